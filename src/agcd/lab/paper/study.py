"""One data set under study: its splits, its settings, and the cells that a line of a table stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from agcd.config import Config, make_config, merged
from agcd.io import digest, read_json, write_json
from agcd.lab.bench import Progress
from agcd.lab.cells import NO_QUERY, Cell, load, prepare
from agcd.lab.published import parse_spec, with_preset
from agcd.lab.results import name_of
from agcd.training.n_classes import estimate_n_classes, prefix_features
from agcd.types import Dataset, NumberOfClasses

QUICK: dict[str, Any] = {
    "max_acc": "fast",
    "train": {"base_epochs": 3, "round_epochs": 2},
    "query": {"rounds": 2},
}
"""What ``--quick`` changes: enough to see every table and figure, too little to believe one."""
ESTIMATE_METHODS = {"fast": "brent", "published": "published"}
"""By ``max_acc``: the paper's search, over our k-means or the published one. The product's own is "grid"."""
MadeOf = Literal["images", "texts", "embeddings"]


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
    made_of: MadeOf = "images"

    @property
    def n_classes(self) -> int:
        return self.n_old + self.n_novel

    @property
    def name(self) -> str:
        """A short name: that of the paper's data set, or of the file or folder."""
        return Path(name_of(self.data)).stem

    @property
    def title(self) -> str:
        known = parse_spec(self.data)
        return known[0].title if known else self.name

    @property
    def protocol(self) -> str:
        return str(self.settings.get("protocol", "quick"))

    @property
    def config(self) -> Config:
        """The settings that its tables have in common, complete."""
        return make_config(self.settings)

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
    budget = cell.config.query.budget or n_novel
    return Study(data, n_seeds, settings, split, n_old, n_novel, budget, quick, made_of=made_of(loaded.dataset))


def made_of(dataset: Dataset) -> MadeOf:
    """What features are computed from, in the order in which ``open_features`` looks."""
    return "embeddings" if dataset.x is not None else "texts" if dataset.texts is not None else "images"


def with_estimates(study: Study, out: Path, cache_dir: Path, progress: Progress) -> Study:
    """The study with the number of classes that Max-ACC estimates for each seed; stored, because it takes a minute."""
    cells = study.entry("", NO_QUERY).cells
    return replace(study, estimates=tuple(_estimate(cell, out, cache_dir, progress) for cell in cells))


def _estimate(cell: Cell, out: Path, cache_dir: Path, progress: Progress) -> NumberOfClasses:
    """The estimate for the start of a cell; strategy and training play no part in it."""
    method = ESTIMATE_METHODS[cell.config.max_acc]
    parts = {"data": cell.data, "seed": cell.seed, "split": cell.split, "backbone": cell.settings.get("backbone")}
    path = out / "estimates" / f"{digest([parts, method])}.json"
    if not path.exists():
        prepared = prepare(cell, cache_dir)
        labels = prepared.labels
        rows = labels.train_rows
        x = prefix_features(prepared.features, rows)
        found = estimate_n_classes(x, labels.y_class[rows], labels.n_old, method=method, seed=cell.seed)
        write_json(path, {"cell": asdict(cell), "estimate": found.to_json()})
        progress(f"number of classes, {cell.data} seed {cell.seed}: {found.n} estimated")
    return NumberOfClasses.from_json(read_json(path)["estimate"])
