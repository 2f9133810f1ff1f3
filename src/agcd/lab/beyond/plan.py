"""What is compared: the lines of each table, and the cells that each line stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agcd.config import OUR_ANSWERS, OUR_STRATEGY, AnswersConfig, merged
from agcd.errors import ConfigError, did_you_mean
from agcd.lab.cells import NO_QUERY, Cell
from agcd.lab.paper.comparable import flat
from agcd.lab.paper.study import Entry, Study, open_study
from agcd.lab.results import unique

OURS, REFERENCE, RANDOM = "ours", "adaptive_novel", "random"
OURS_IN_BATCHES = "ours in batches"
OUR_USE = ", our use"
"""Ends the names of lines that ask as others do and learn from the answers as we do: the strategies alone compared."""
BUDGETED = (RANDOM, REFERENCE, OURS)
_PAPERS_ANSWERS = AnswersConfig().model_dump()
_DECIDED = ("query.budget", "query.strategy", "query.one_by_one", "train.answers")
"""Settings that make the comparison, so that nobody else may set them."""


@dataclass(frozen=True)
class Contender:
    """A strategy, what training makes of the answers (settings of ``train.answers``), and how it is asked and trained.

    A line of every table. ``trainer`` is None for that of the other settings.
    """

    name: str
    strategy: str
    answers: Mapping[str, Any]
    one_by_one: bool = False
    trainer: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What makes it differ from other lines; defaults are left out, so that other benchmarks share its runs."""
        train: dict[str, Any] = {"answers": dict(self.answers)}
        train |= {"trainer": self.trainer} if self.trainer else {}
        return {"train": train} | ({"query": {"one_by_one": True}} if self.one_by_one else {})


PIECES = {"mapping": "mapping", "repair": "repair", "label use": "spread_weight", "restart": "restart"}
"""Names of the switches of ``train.answers`` in tables."""


def _alone(switch: str) -> dict[str, Any]:
    """The paper's use of answers with one piece of ours."""
    return _PAPERS_ANSWERS | {switch: OUR_ANSWERS[switch]}


def _without(switch: str) -> dict[str, Any]:
    """Our use of answers with one piece of the paper's."""
    return {**OUR_ANSWERS, switch: _PAPERS_ANSWERS[switch]}


_REFERENCE = Contender(REFERENCE, REFERENCE, _PAPERS_ANSWERS)
_OURS = Contender(OURS, OUR_STRATEGY, OUR_ANSWERS, one_by_one=True)
_OURS_IN_BATCHES = Contender(OURS_IN_BATCHES, OUR_STRATEGY, OUR_ANSWERS)
_AS_PUBLISHED = (NO_QUERY, RANDOM, "typiclust")
_WITH_OUR_USE = ("typiclust", REFERENCE, "max_herding", "uncertainty_herding")
_FIRST_TRIES = {"k-means, logistic regression": "logistic", "k-means, label spreading": "label_spreading"}
"""What a data scientist tries first: the medoids of k-means, and a model of scikit-learn's."""
MAIN = (
    *(Contender(name, "kmeans", _PAPERS_ANSWERS, trainer=trainer) for name, trainer in _FIRST_TRIES.items()),
    *(Contender(name, name, _PAPERS_ANSWERS) for name in _AS_PUBLISHED),
    _REFERENCE,
    *(Contender(name + OUR_USE, name, OUR_ANSWERS) for name in _WITH_OUR_USE),
    _OURS_IN_BATCHES,
    _OURS,
)
_NOT_THE_STRATEGY = Contender(REFERENCE + OUR_USE, REFERENCE, OUR_ANSWERS)
ALONE = (
    _REFERENCE,
    Contender("strategy alone", OUR_STRATEGY, _PAPERS_ANSWERS, one_by_one=True),
    *(Contender(f"{name} alone", REFERENCE, _alone(switch)) for name, switch in PIECES.items()),
    _NOT_THE_STRATEGY,
    _OURS,
)
WITHOUT = (
    _OURS,
    _NOT_THE_STRATEGY,
    *(Contender(f"all but {name}", OUR_STRATEGY, _without(switch), one_by_one=True) for name, switch in PIECES.items()),
)
"""The first line of either is what its others are compared with. Lines that stand in several tables have one name,
because they are the same runs."""


@dataclass(frozen=True)
class Plan:
    """The data sets with as many seeds as the main table has, and as many as the other tables have.

    ``n_studied`` of them, the first ones, are also run with half and with double the questions and piece by piece.
    ``lines`` are those of the main table.
    """

    studies: tuple[Study, ...]
    n_other_seeds: int
    n_studied: int
    lines: tuple[Contender, ...] = MAIN

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

    def main_entries(self, study: Study) -> list[Entry]:
        """The main table of a data set."""
        return contender_entries(study, self.lines)

    @property
    def entries(self) -> list[Entry]:
        """Everything that is run; what tables share is here more than once."""
        main = [entry for study in self.studies for entry in self.main_entries(study)]
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
    lines: Sequence[str] | None = None,
) -> Plan:
    """Read each data set once to see what it holds; settings that the comparison decides are refused.

    ``lines`` names those of the main table that are wanted beside ours and the paper's; None is all of them.
    """
    for name in flat(settings):
        if name.startswith(_DECIDED):
            raise ConfigError(f"Setting {name!r} is decided by 'agcd bench beyond'; leave it out.")
    studies = [_open(spec, n_seeds, settings, split, cache_dir) for spec in unique(data)]
    return Plan(tuple(studies), n_other_seeds, n_studied, chosen_lines(lines))


def chosen_lines(names: Sequence[str] | None) -> tuple[Contender, ...]:
    """The lines of these names, ours and the paper's among them, in the order of the table."""
    if names is None:
        return MAIN
    known = [line.name for line in MAIN]
    for name in names:
        if name not in known:
            raise ConfigError(f"There is no line {name!r}.{did_you_mean(name, known)}")
    return tuple(line for line in MAIN if line.name in (*names, REFERENCE, OURS))


def _open(data: str, n_seeds: int, settings: dict[str, Any], split: dict[str, Any], cache_dir: Path) -> Study:
    """The study of ``data`` with one question a round per novel class, also where the paper has other numbers."""
    study = open_study(data, n_seeds, settings, split, cache_dir)
    return replace(study, settings={**study.settings, "query": settings.get("query", {})}, budget=study.n_novel)


def budget_entries(study: Study, budget: int) -> list[Entry]:
    return [_entry(study, contender, budget) for contender in MAIN if contender.name in BUDGETED]


def contender_entries(study: Study, contenders: Sequence[Contender]) -> list[Entry]:
    return [_entry(study, contender) for contender in contenders]


def _entry(study: Study, contender: Contender, budget: int | None = None) -> Entry:
    """The contender's cells.

    A budget of one per novel class is the default and left out, as other benchmarks leave it out: they share its runs.
    """
    settings = merged(study.settings, contender.settings)
    if budget is not None:
        settings = merged(settings, {"query": {"budget": budget}})
    cells = tuple(Cell(study.data, contender.strategy, seed, settings, study.split) for seed in range(study.n_seeds))
    return Entry(contender.name, str(budget or study.budget), cells)
