from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import agcd
from agcd.config import PRESETS, Config, make_config, read_toml
from agcd.errors import ConfigError
from agcd.training import settings_record


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"train": {"lrr": 1}}, "Unknown setting 'train.lrr'. Did you mean 'lr'?"),
        ({"sed": 1}, "Unknown setting 'sed'. Did you mean 'seed'?"),
        ({"protocol": "papr"}, "Unknown protocol 'papr'. Did you mean 'paper'?"),
        ({"query": {"budget": 0}}, "Setting 'query.budget' is 0"),
        ({"query": {"budget": -3}}, "Setting 'query.budget' is -3"),
        ({"query": {"rounds": 0}}, "Setting 'query.rounds' is 0"),
        ({"train": {"base_epochs": "many"}}, "Setting 'train.base_epochs' is 'many'"),
        ({"train": 3}, "Setting 'train' is 3"),
        ({"n_slots": 0}, "Setting 'n_slots' is 0"),
        ({"train": {"pim": {"scle": 1}}}, "Unknown setting 'train.pim.scle'. Did you mean 'scale'?"),
        ({"train": {"gcd": {"n_init": 0}}}, "Setting 'train.gcd.n_init' is 0"),
        ({"train": {"mugcd": {"teacher_decay_end": 1.0}}}, "Setting 'train.mugcd.teacher_decay_end' is 1.0"),
        ({"protocol": "paper", "train": {"pim": 3}}, "Setting 'train.pim' is 3"),
        ({"train": {"pim": {"entropy_weights": [0.5, -1]}}}, "Setting 'train.pim.entropy_weights.1' is -1"),
        ({"train": {"pim": {"entropy_weights": []}}}, "Setting 'train.pim.entropy_weights' is []"),
    ],
)
def test_a_wrong_setting_is_one_sentence_with_its_name(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        make_config(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", sorted(PRESETS))
def test_every_protocol_is_valid_and_what_the_user_says_wins(protocol: str) -> None:
    config = make_config({"protocol": protocol, "train": {"base_epochs": 7}})
    assert config.protocol == protocol
    assert config.train.base_epochs == 7


def test_settings_survive_a_round_trip_through_their_record() -> None:
    config = make_config({"protocol": "official", "seed": 3})
    assert make_config(settings_record(config)) == config


def test_a_setting_that_came_later_is_recorded_only_where_it_is_used() -> None:
    plain, spelt_out, literal = (
        settings_record(make_config({"query": query}))
        for query in ({}, {"stability": "mapping"}, {"stability": "literal"})
    )
    assert plain == spelt_out
    assert "stability" not in plain["query"]
    assert {**plain["query"], "stability": "literal"} == literal["query"]


def test_one_setting_of_a_section_leaves_the_others_to_the_protocol() -> None:
    train = make_config({"protocol": "paper", "train": {"pim": {"steps": 7}}}).train
    assert (train.pim.steps, train.pim.n_init, train.pim.search_steps, train.gcd.n_init) == (7, 100, 1000, 100)
    assert train.pim.entropy_weights[0] == 0.05
    assert len(train.pim.entropy_weights) == 20


def test_settings_are_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "agcd.toml"
    path.write_text('protocol = "paper"\nseed = 4\n[train]\nlr = 0.2\n')
    config = make_config(read_toml(path))
    assert (config.protocol, config.seed, config.train.lr, config.train.base_epochs) == ("paper", 4, 0.2, 200)


@pytest.mark.parametrize("content", ["seed = ", "\xff"])
def test_a_broken_settings_file_is_one_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "agcd.toml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match="is not valid TOML"):
        read_toml(path)
    with pytest.raises(ConfigError, match="There is no settings file"):
        read_toml(tmp_path / "none.toml")


def setting_names(model: type[BaseModel]) -> list[str]:
    names = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        names += setting_names(inner) if isinstance(inner, type) and issubclass(inner, BaseModel) else [name]
    return names


@pytest.mark.parametrize("name", setting_names(Config))
def test_every_setting_is_read_somewhere(name: str) -> None:
    package = Path(agcd.__file__).parent
    code = "\n".join(p.read_text(encoding="utf-8") for p in package.rglob("*.py") if p.name != "config.py")
    in_config = (package / "config.py").read_text(encoding="utf-8")
    assert re.search(rf"\.{name}\b", code) or (name == "protocol" and '"protocol"' in in_config)


@pytest.mark.parametrize(("protocol", "n_questions"), [("quick", 20), ("short", 5), ("paper", 5), ("official", 5)])
def test_a_round_asks_by_the_size_of_the_pool_and_the_papers_by_the_number_of_novel_slots(
    protocol: str, n_questions: int
) -> None:
    config = make_config({"protocol": protocol})
    assert config.budget(n_pool=424, n_novel_slots=5) == n_questions
    assert config.budget(n_pool=0, n_novel_slots=0) == 1
    assert make_config({"protocol": protocol, "query": {"budget": 7}}).budget(424, 5) == 7
