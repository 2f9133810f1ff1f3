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
from agcd.lab.given import name_without_digest

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
    return name if equals and "/" not in name else name_without_digest(Path(data).name)


def blocks_of(records: Iterable[Record]) -> dict[tuple[str, str | None], list[Record]]:
    """The records of each data set and trainer, in the order they first appear; other studies name no trainer."""
    blocks: dict[tuple[str, str | None], list[Record]] = {}
    for record in records:
        blocks.setdefault((record["data"], record.get("trainer")), []).append(record)
    return blocks


def summary_heads(more: Sequence[str] = ()) -> list[str]:
    """The columns of ``summary_lines``; ``more`` are those that metrics have added."""
    return ["strategy", "labels", *_COLUMNS.values(), *more]


def summary_lines(block: Sequence[Record], more: Sequence[str] = ()) -> list[list[str]]:
    """The last round of each strategy of a block, mean ± standard deviation over seeds."""
    lines = []
    for strategy in unique(r["strategy"] for r in block):
        last = last_round(block, strategy)
        own = [r for r in block if r["strategy"] == strategy and r["round"] == last]
        figures = [mean_std([r[c] for r in own], percent=c in _PERCENT) for c in (*_COLUMNS, *more)]
        lines.append([strategy, str(own[0]["n_queried"]), *figures])
    return lines


def summary_table(records: Sequence[Record], more: Sequence[str] = ()) -> str:
    """Markdown of ``summary_lines``, one block per data set and trainer."""
    blocks = []
    for (data, trainer), block in blocks_of(records).items():
        title = f"{_title(data, trainer)}, {len({r['seed'] for r in block})} seeds"
        blocks.append(f"{title}\n\n{markdown_table(summary_heads(more), summary_lines(block, more))}")
    return "\n\n".join(blocks) + "\n"


def rounds_heads(block: Sequence[Record]) -> list[str]:
    """The columns of ``rounds_lines``."""
    return ["strategy", *("base" if n == 0 else f"round {n}" for n in _rounds(block))]


def rounds_lines(block: Sequence[Record]) -> list[list[str]]:
    """All accuracy of each strategy of a block after each round, mean ± standard deviation over seeds."""
    lines = []
    for strategy in unique(r["strategy"] for r in block):
        own = [r for r in block if r["strategy"] == strategy]
        cells = [[r["acc_all"] for r in own if r["round"] == n] for n in _rounds(block)]
        lines.append([strategy, *(mean_std(c, percent=True) for c in cells)])
    return lines


def rounds_table(records: Sequence[Record]) -> str:
    """Markdown of ``rounds_lines``, one block per data set and trainer."""
    blocks = []
    for (data, trainer), block in blocks_of(records).items():
        table = markdown_table(rounds_heads(block), rounds_lines(block))
        blocks.append(f"{_title(data, trainer)}, All after each round\n\n{table}")
    return "\n\n".join(blocks) + "\n"


def _rounds(block: Iterable[Record]) -> list[int]:
    return sorted({r["round"] for r in block})


def _title(data: str, trainer: str | None) -> str:
    return f"**{name_of(data)}**" if trainer is None else f"**{name_of(data)}**, {trainer}"


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
