"""Which split a benchmark starts from, and what it says about it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agcd.errors import ConfigError, DataError
from agcd.lab.published import PUBLISHED, published_old_classes, with_preset
from agcd.lab.starts import split_of
from support.datasets import toy_rows

CUB = toy_rows([6] * 200)


def test_the_papers_data_start_from_the_published_classes() -> None:
    one, words = split_of("cub=x", CUB, 0, "paper", {})
    other, _ = split_of("cub=x", CUB, 1, "paper", {})
    assert one.old_classes == published_old_classes("cub", CUB)
    assert words == "published classes, labels drawn with the seed"
    assert set(one.labelled_rows.tolist()) != set(other.labelled_rows.tolist())
    assert len(one.labelled_rows) == int(0.2 * 100 * 6)


def test_the_official_protocol_labels_the_same_published_rows_for_every_seed() -> None:
    one, words = split_of("cub=x", CUB, 0, "official", {})
    other, _ = split_of("cub=x", CUB, 1, "official", {})
    np.testing.assert_array_equal(one.labelled_rows, other.labelled_rows)
    assert words == "published classes and labels"


def test_all_other_data_are_split_with_the_seed_and_so_are_the_papers_on_request() -> None:
    _, words = split_of("toy", CUB, 0, "paper", {"classes": None, "n_old": 7})
    split, asked = split_of("cub=x", CUB, 3, "official", {"classes": "seeded"})
    assert words == asked == "classes and labels drawn with the seed"
    assert split.old_classes != published_old_classes("cub", CUB)


def test_a_file_may_list_the_old_classes(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"old": ["c3", "c1"]}))
    split, words = split_of("toy", CUB, 0, "quick", {"classes": str(path)})
    assert split.old_classes == ("c3", "c1")
    assert words == "classes of mine.json, labels drawn with the seed"


def test_a_published_split_is_refused_for_data_that_has_none() -> None:
    with pytest.raises(ConfigError, match="toy has no published split; use --split seeded"):
        split_of("toy", CUB, 0, "paper", {"classes": "published"})
    with pytest.raises(DataError, match="publised"):
        split_of("toy", CUB, 0, "paper", {"classes": "publised"})


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_preset_gives_way_to_what_the_user_says(name: str) -> None:
    facts = PUBLISHED[name]
    plain = with_preset(f"{name}=x", {})
    assert plain["query"] == {"rounds": facts.rounds, "budget": facts.budget}
    assert plain["train"] == {"entropy_weight": facts.entropy_weight}
    mine = {"train": {"entropy_weight": 9.0, "lr": 0.5}, "query": {"budget": 7}, "seed": 3}
    assert with_preset(f"{name}=x", mine) == {
        "train": {"entropy_weight": 9.0, "lr": 0.5},
        "query": {"rounds": facts.rounds, "budget": 7},
        "seed": 3,
    }
    assert with_preset("toy", mine) == mine
