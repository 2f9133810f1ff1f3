"""What is compared: the lines of each table, and the cells that each line stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agcd.config import OUR_ANSWERS, OUR_STRATEGY, AnswersConfig, merged
from agcd.errors import ConfigError
from agcd.lab.cells import NO_QUERY, Cell
from agcd.lab.paper.study import Entry, Study, open_study
from agcd.lab.paper.table_text import flat
from agcd.lab.results import unique

OURS, REFERENCE, RANDOM = "ours", "adaptive_novel", "random"
BUDGETED = (RANDOM, REFERENCE, OURS)
_PAPERS_ANSWERS = AnswersConfig().model_dump()
_DECIDED = ("query.budget", "query.strategy", "train.answers")
"""Settings that make the comparison, so that nobody else may set them."""


@dataclass(frozen=True)
class Contender:
    """A strategy, and what training makes of the answers (settings of ``train.answers``); a line of every table."""

    name: str
    strategy: str
    answers: Mapping[str, Any]


PIECES = {"mapping": "mapping", "repair": "repair", "label use": "spread_weight", "restart": "restart"}
"""Names of the switches of ``train.answers`` in tables."""


def _alone(switch: str) -> dict[str, Any]:
    """The paper's use of answers with one piece of ours."""
    return _PAPERS_ANSWERS | {switch: OUR_ANSWERS[switch]}


def _without(switch: str) -> dict[str, Any]:
    """Our use of answers with one piece of the paper's."""
    return {**OUR_ANSWERS, switch: _PAPERS_ANSWERS[switch]}


_REFERENCE, _OURS = Contender(REFERENCE, REFERENCE, _PAPERS_ANSWERS), Contender(OURS, OUR_STRATEGY, OUR_ANSWERS)
_NOT_THE_STRATEGY = Contender("all but the strategy", REFERENCE, OUR_ANSWERS)
_OTHERS = (NO_QUERY, RANDOM, "margin", "badge", "typiclust")
MAIN = (*(Contender(name, name, _PAPERS_ANSWERS) for name in _OTHERS), _REFERENCE, _OURS)
ALONE = (
    _REFERENCE,
    Contender("strategy alone", OUR_STRATEGY, _PAPERS_ANSWERS),
    *(Contender(f"{name} alone", REFERENCE, _alone(switch)) for name, switch in PIECES.items()),
    _NOT_THE_STRATEGY,
    _OURS,
)
WITHOUT = (
    _OURS,
    _NOT_THE_STRATEGY,
    *(Contender(f"all but {name}", OUR_STRATEGY, _without(switch)) for name, switch in PIECES.items()),
)
"""The first line of either is what its others are compared with. Lines that stand in several tables have one name,
because they are the same runs."""


@dataclass(frozen=True)
class Plan:
    """The data sets with as many seeds as the main table has, and as many as the other tables have.

    ``n_studied`` of them, the first ones, are also run with half and with double the questions and piece by piece.
    """

    studies: tuple[Study, ...]
    n_other_seeds: int
    n_studied: int

    @property
    def ablated(self) -> tuple[Study, ...]:
        return tuple(replace(study, n_seeds=self.n_other_seeds) for study in self.studies[: self.n_studied])

    @property
    def budgeted(self) -> tuple[tuple[Study, int], ...]:
        """Data sets with the half and the double number of questions a round."""
        return tuple(
            (study, budget)
            for study in self.ablated
            for budget in (max(1, round(study.n_novel / 2)), 2 * study.n_novel)
        )

    @property
    def entries(self) -> list[Entry]:
        """Everything that is run; what tables share is here more than once."""
        main = [entry for study in self.studies for entry in main_entries(study)]
        budgets = [entry for study, budget in self.budgeted for entry in budget_entries(study, budget)]
        pieces = [entry for study in self.ablated for entry in contender_entries(study, (*ALONE, *WITHOUT))]
        return [*main, *budgets, *pieces]


def make_plan(
    data: Sequence[str],
    n_seeds: int,
    n_other_seeds: int,
    n_studied: int,
    settings: dict[str, Any],
    split: dict[str, Any],
    cache_dir: Path,
) -> Plan:
    """Read each data set once to see what it holds; settings that the comparison decides are refused."""
    for name in flat(settings):
        if name.startswith(_DECIDED):
            raise ConfigError(f"Setting {name!r} is decided by 'agcd bench beyond'; leave it out.")
    studies = [_open(spec, n_seeds, settings, split, cache_dir) for spec in unique(data)]
    return Plan(tuple(studies), n_other_seeds, n_studied)


def _open(data: str, n_seeds: int, settings: dict[str, Any], split: dict[str, Any], cache_dir: Path) -> Study:
    """The study of ``data`` with one question a round per novel class, also where the paper has other numbers."""
    study = open_study(data, n_seeds, settings, split, cache_dir)
    return replace(study, settings={**study.settings, "query": settings.get("query", {})}, budget=study.n_novel)


def main_entries(study: Study) -> list[Entry]:
    return contender_entries(study, MAIN)


def budget_entries(study: Study, budget: int) -> list[Entry]:
    return [_entry(study, contender, budget) for contender in MAIN if contender.name in BUDGETED]


def contender_entries(study: Study, contenders: Sequence[Contender]) -> list[Entry]:
    return [_entry(study, contender) for contender in contenders]


def _entry(study: Study, contender: Contender, budget: int | None = None) -> Entry:
    """The contender's cells.

    A budget of one per novel class is the default and left out, as other benchmarks leave it out: they share its runs.
    """
    settings = merged(study.settings, {"train": {"answers": dict(contender.answers)}})
    if budget is not None:
        settings = merged(settings, {"query": {"budget": budget}})
    cells = tuple(Cell(study.data, contender.strategy, seed, settings, study.split) for seed in range(study.n_seeds))
    return Entry(contender.name, str(budget or study.budget), cells)
