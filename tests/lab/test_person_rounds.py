"""The simulated person at the served page: real processes, real training, answers and ticks over HTTP."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from agcd.config import BackboneConfig
from agcd.lab.datasets import load_data
from agcd.lab.person.costs import Costs
from agcd.lab.person.pool import Start, draw_pool
from agcd.lab.person.simulated import Person
from agcd.lab.person.ways import WAYS, Place
from support.benches import toy_folder

FAST = (
    *("backbone.name=toy", "backbone.image_size=32", "backbone.views=2", "n_slots=5"),
    *("train.base_epochs=2", "train.round_epochs=2", "train.projector_width=16", "train.projector_dim=8"),
    "query.budget=3",
)
N_ANSWERS = 3
"""Questions of a round."""


class Noting(Person):
    """A person who remembers what was said of which row."""

    def __init__(self, *given: object, **more: object):
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.said: dict[int, int] = {}

    def name_on_card(self, row: int, suggested: Collection[int]) -> int:
        self.said[row] = super().name_on_card(row, suggested)
        return self.said[row]


def test_the_page_calls_rows_what_the_person_said_and_makes_it_wait_for_training(tmp_path: Path) -> None:
    dataset = load_data(str(toy_folder(tmp_path / "toys")), tmp_path)
    backbone = BackboneConfig(name="toy", image_size=32, trainable_blocks=0, views=1)
    drawn = draw_pool(dataset, Start(None, 2, 3), 0, backbone, tmp_path / "cache")
    labelled = np.flatnonzero(~drawn.is_hidden)
    person = Noting(
        drawn.truth.tolist().__getitem__, drawn.names, range(2), Costs(), errors=0, rng=np.random.default_rng(0)
    )
    rounds = WAYS["rounds"].run(drawn.pool, person, Place(tmp_path / "project", FAST))
    waits, keys = [], []
    for _ in range(1 + N_ANSWERS + 1):  # base training, three answers, a round
        names = next(rounds)
        waits.append(person.waited)
        keys.append(person.keys)
        assert all(names[row] == said for row, said in person.said.items())
        np.testing.assert_array_equal(names[labelled], drawn.truth[labelled])
        if waits[-1] > waits[0]:
            break
    rounds.close()
    assert 0 < len(person.said) <= N_ANSWERS  # a tick may answer a question that was still open
    assert 0 < waits[0] == waits[-2] < waits[-1]
    assert keys == sorted(keys)
    assert keys[-1] == keys[-2] + 1  # Enter begins a round
    assert person.prepared > 0
    assert person.shown.isdisjoint(labelled.tolist())
    assert person.shown >= set(person.said)


def test_at_the_page_the_person_answers_reviews_and_ends_with_every_name_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = load_data(str(toy_folder(tmp_path / "toys")), tmp_path)
    backbone = BackboneConfig(name="toy", image_size=32, trainable_blocks=0, views=1)
    drawn = draw_pool(dataset, Start(None, 2, 3), 0, backbone, tmp_path / "cache")
    person = Noting(
        drawn.truth.tolist().__getitem__, drawn.names, range(2), Costs(), errors=0, rng=np.random.default_rng(0)
    )
    monkeypatch.setattr("agcd.lab.person.page.N_ANSWERS", 3)
    shown = []
    for names in WAYS["page"].run(drawn.pool, person, Place(tmp_path / "project", FAST)):
        shown.append(len(person.shown))
        assert all(names[row] == said for row, said in person.said.items())
    assert shown[:4] == [0, 1, 2, 3]
    assert shown[-1] == drawn.is_hidden.sum()
    np.testing.assert_array_equal(names, drawn.truth)
