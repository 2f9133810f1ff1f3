"""Tidy results and the tables made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from agcd.io import atomic_write

Record = dict[str, Any]
_COLUMNS = {
    "acc_all": "All",
    "acc_old": "Old",
    "acc_new": "New",
    "mapped_all": "All, mapped",
    "nov_coverage": "Nov-C",
    "nov_ratio": "Nov-R",
    "nov_uniformity": "Nov-U",
    "nov_information": "Nov-I",
    "best_on_test": "(best epoch on test)",
}
_PERCENT = {"acc_all", "acc_old", "acc_new", "mapped_all", "best_on_test"}


def write_results(records: Sequence[Record], folder: Path) -> None:
    """All rounds of all cells, one line each, as Parquet and CSV."""
    table = pa.Table.from_pylist(list(records))
    with atomic_write(folder / "results.parquet") as aside:
        pq.write_table(table, aside)
    with atomic_write(folder / "results.csv") as aside:
        pyarrow.csv.write_csv(table, aside)


def name_of(data: str) -> str:
    """How a table calls a data set: by its own name (``banking=PATH``), or by the end of its path."""
    name, equals, _ = data.partition("=")
    return name if equals and "/" not in name else Path(data).name


def summary_table(records: Sequence[Record]) -> str:
    """Markdown: the last round of each strategy, mean ± standard deviation over seeds, one block per data set."""
    blocks = []
    for data in unique(r["data"] for r in records):
        rows = [r for r in records if r["data"] == data]
        last = [r for r in rows if r["round"] == last_round(rows, r["strategy"])]
        lines = []
        for strategy in unique(r["strategy"] for r in last):
            own = [r for r in last if r["strategy"] == strategy]
            figures = [mean_std([r[c] for r in own], percent=c in _PERCENT) for c in _COLUMNS]
            lines.append([strategy, str(own[0]["n_queried"]), *figures])
        title = f"**{name_of(data)}**, {len({r['seed'] for r in last})} seeds"
        blocks.append(f"{title}\n\n{markdown_table(['strategy', 'labels', *_COLUMNS.values()], lines)}")
    return "\n\n".join(blocks) + "\n"


def rounds_table(records: Sequence[Record]) -> str:
    """Markdown: All accuracy after each round, mean ± standard deviation over seeds."""
    blocks = []
    for data in unique(r["data"] for r in records):
        rows = [r for r in records if r["data"] == data]
        numbers = sorted({r["round"] for r in rows})
        lines = []
        for strategy in unique(r["strategy"] for r in rows):
            cells = [[r["acc_all"] for r in rows if r["strategy"] == strategy and r["round"] == n] for n in numbers]
            lines.append([strategy, *(mean_std(c, percent=True) for c in cells)])
        heads = ["strategy", *("base" if n == 0 else f"round {n}" for n in numbers)]
        blocks.append(f"**{name_of(data)}**, All after each round\n\n{markdown_table(heads, lines)}")
    return "\n\n".join(blocks) + "\n"


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table without a final newline; each line has as many cells as there are ``heads``."""
    rule = "|" + "---|" * len(heads)
    return "\n".join([_markdown_line(heads), rule, *map(_markdown_line, lines)])


def _markdown_line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def last_round(records: Sequence[Record], strategy: str) -> int:
    return int(max(r["round"] for r in records if r["strategy"] == strategy))


def unique(values: Any) -> list[Any]:
    """Distinct values in the order they first appear."""
    return list(dict.fromkeys(values))


def mean_std(values: Sequence[float | None], *, percent: bool) -> str:
    """``71.3 ± 1.2``; the sample deviation over seeds, nothing where there is no value."""
    found = np.asarray([v for v in values if v is not None], float) * (100 if percent else 1)
    if len(found) == 0:
        return "–"
    digits = 1 if percent else 2
    deviation = f" ± {found.std(ddof=1):.{digits}f}" if len(found) > 1 else ""
    return f"{found.mean():.{digits}f}{deviation}"
