"""The numbers that the paper prints, to stand beside ours where the setting is the same.

``numbers.json`` holds them as printed, also those that cannot be right: such a line carries a note.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class PaperNumbers:
    """One line of one table of the paper, for one data set."""

    values: Mapping[str, float]
    """By measure, as printed: accuracies in per cent, novelty in [0, 1]."""
    note: str | None
    """Why the line cannot be right, as one sentence; None if nothing speaks against it."""

    def value(self, measure: str) -> float | None:
        """The printed number, or None if the paper does not give this measure."""
        return self.values.get(measure)


@dataclass(frozen=True)
class PaperEstimate:
    """What Max-ACC found for the paper."""

    truth: int
    estimated: int


def paper_numbers(table: str, dataset: str, line: str, column: str = "") -> PaperNumbers | None:
    """What the paper prints there, or None if it has no such data set, line or column.

    Parameters
    ----------
    table : main, novelty, factors, metrics, ratio, budget, unknown-k, trainers, open-set, long-tail, transfer-round
    line : a strategy (``none`` without questions); in ``factors`` a to d; in ``metrics`` an uncertainty measure
    column : label ratio, budget, trainer or ``estimated``, where the table has several; else empty
    """
    printed = _printed()
    values = printed["tables"][table].get(dataset, {}).get(line, {}).get(column)
    if values is None:
        return None
    place = {"table": table, "dataset": dataset, "line": line, "column": column}
    notes = (erratum["note"] for erratum in printed["errata"] if place.items() <= erratum.items())
    return PaperNumbers(values, next(notes, None))


def paper_estimate(dataset: str) -> PaperEstimate | None:
    """The number of classes that the paper estimates, or None for a data set that it does not try."""
    found = _printed()["estimates"].get(dataset)
    return PaperEstimate(**found) if found else None


@cache
def _printed() -> dict[str, Any]:
    text = files("agcd.lab.paper").joinpath("numbers.json").read_text(encoding="utf-8")
    printed: dict[str, Any] = json.loads(text)
    return printed
