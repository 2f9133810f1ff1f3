"""One data set under study: its splits, its settings, and the cells that a line of a table stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agcd.config import merged
from agcd.lab.cells import NO_QUERY, Cell, load
from agcd.lab.paper.estimates import estimates_of
from agcd.lab.presets import with_preset
from agcd.lab.published import parse_spec
from agcd.lab.runner import Say
from agcd.types import NumberOfClasses

QUICK: dict[str, Any] = {"train": {"base_epochs": 3, "round_epochs": 2}, "query": {"rounds": 2}}
"""What ``--quick`` changes: enough to see every table and figure, too little to believe one."""


@dataclass(frozen=True)
class Entry:
    """One place of a table: a line, a column, and its cells, one per seed."""

    line: str
    column: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Study:
    """A data set with everything that its tables have in common.

    ``budget`` is the number of questions per round of every table that does not vary it: as the paper has it for its
    own data sets, else one per novel class of the standard split. It is kept when the split varies.
    """

    data: str
    n_seeds: int
    settings: dict[str, Any]
    split: dict[str, Any]
    n_old: int
    n_novel: int
    budget: int
    quick: bool = False
    estimates: tuple[NumberOfClasses, ...] = ()
    """The estimated number of classes of each seed, where something wants it."""

    @property
    def n_classes(self) -> int:
        return self.n_old + self.n_novel

    @property
    def name(self) -> str:
        """A short name: that of the paper's data set, or of the file or folder."""
        known = parse_spec(self.data)
        return known[0].name if known else Path(self.data).stem

    @property
    def title(self) -> str:
        known = parse_spec(self.data)
        return known[0].title if known else self.name

    @property
    def protocol(self) -> str:
        return str(self.settings.get("protocol", "quick"))

    @property
    def is_the_papers(self) -> bool:
        """Whether this is a data set of the paper under one of its protocols, so that its numbers may stand beside."""
        return parse_spec(self.data) is not None and self.protocol in ("paper", "official") and not self.quick

    def entry(
        self,
        line: str,
        strategy: str,
        column: str = "",
        *,
        settings: Mapping[str, Any] | None = None,
        split: Mapping[str, Any] | None = None,
        n_slots: Sequence[int] = (),
    ) -> Entry:
        """The cells of a line; ``n_slots`` gives each seed its own number of slots."""
        values = merged(self.settings, {"query": {"budget": self.budget}}, settings or {})
        cells = tuple(
            Cell(
                self.data,
                strategy,
                seed,
                merged(values, {"n_slots": n_slots[seed]}) if n_slots else values,
                {**self.split, **(split or {})},
            )
            for seed in range(self.n_seeds)
        )
        return Entry(line, column, cells)


@dataclass(frozen=True)
class Wanted:
    """A table or figure by name, and the entries it needs of a data set."""

    name: str
    title: str
    entries: Callable[[Study], list[Entry]]
    core: bool
    """Whether it carries a claim of the paper and so wants all seeds; the others make do with fewer."""
    estimates: bool
    """Whether it needs the estimated number of classes."""


def open_study(
    data: str, n_seeds: int, settings: dict[str, Any], split: dict[str, Any], cache_dir: Path, *, quick: bool = False
) -> Study:
    """The study of ``data``, which is read once to see what it holds."""
    settings = merged(with_preset(data, settings), QUICK if quick else {})
    cell = Cell(data, NO_QUERY, 0, settings, split)
    loaded = load(cell, cache_dir)
    n_old, n_novel = len(loaded.split.old_classes), len(loaded.split.novel_classes)
    return Study(data, n_seeds, settings, split, n_old, n_novel, cell.config.query.budget or n_novel, quick)


def with_estimates(study: Study, out: Path, cache_dir: Path, say: Say) -> Study:
    """The study with the estimated number of classes of each seed, computed once."""
    cells = study.entry("", NO_QUERY).cells
    return replace(study, estimates=tuple(estimates_of(cells, out, cache_dir, say)))
