"""A table as Markdown and as CSV: mean ± deviation over seeds, beside the paper's own number where there is one."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agcd.lab.finished import FinishedCells, Records
from agcd.lab.paper.comparable import flat, network_words, why_withheld
from agcd.lab.paper.printed import PaperNumbers, paper_estimate, paper_numbers
from agcd.lab.paper.study import Entry, Study
from agcd.lab.paper.table_plans import Table
from agcd.lab.results import markdown_table, mean_std, unique


@dataclass(frozen=True)
class Measure:
    """A figure of a finished cell, how it is called and whether it is a share to be shown in per cent."""

    title: str
    percent: bool
    of: Callable[[Records], float | None]


def _last(name: str) -> Callable[[Records], float | None]:
    def read(records: Records) -> float | None:
        value = records[-1][name]
        return None if value is None else float(value)

    return read


def transfer_round(records: Records) -> float | None:
    """The first round whose questions were informative; None when there was none."""
    rounds = [r["round"] for r in records if r["phase"] == "informative"]
    return float(rounds[0]) if rounds else None


def first_diff(records: Records) -> float | None:
    """How much the mapping that answers are translated by changed within the first round: below 0.1 the next questions
    are informative."""
    return float(records[1]["mapping_diff"]) if len(records) > 1 else None


def first_literal_diff(records: Records) -> float | None:
    """The same of the paper's free assignment; records of version 0.1 have none."""
    found = records[1].get("literal_diff") if len(records) > 1 else None
    return None if found is None else float(found)


MEASURES: dict[str, Measure] = {
    "acc_all": Measure("All", True, _last("acc_all")),
    "acc_old": Measure("Old", True, _last("acc_old")),
    "acc_new": Measure("New", True, _last("acc_new")),
    "bal_all": Measure("All, every class alike", True, _last("bal_all")),
    "mapped_all": Measure("All, mapped", True, _last("mapped_all")),
    "best_on_test": Measure("(best epoch on test)", True, _last("best_on_test")),
    "nov_coverage": Measure("Nov-C", False, _last("nov_coverage")),
    "nov_ratio": Measure("Nov-R", False, _last("nov_ratio")),
    "nov_uniformity": Measure("Nov-U", False, _last("nov_uniformity")),
    "nov_information": Measure("Nov-I", False, _last("nov_information")),
    "transfer_round": Measure("round", False, transfer_round),
    "first_diff": Measure("mapping diff of round 1", False, first_diff),
    "first_literal_diff": Measure("literal diff of round 1", False, first_literal_diff),
}
LINES = {
    "none": "w/o AGCD",
    "a": "(a) random",
    "b": "(b) + novelty",
    "c": "(c) + informativeness",
    "d": "(d) + diversity, adaptive",
    "e": "(e) as d, always informative (not in the paper)",
    "literal": "the same by the paper's free assignment (query.stability = literal)",
    "mapping": "the same by the mapping that training uses (query.stability = mapping)",
}
_IN_THE_NETWORKS_WORDS = {"backbone.name", "backbone.weights", "backbone.weights_sha256", "backbone.trainable_blocks"}
COLUMNS = {
    "known": "K known",
    "estimated": "K estimated",
    "below": "K a fifth too low",
    "above": "K a quarter too high",
}


def markdown(table: Table, study: Study, finished: FinishedCells) -> str:
    """The table of one data set with its heading and, below it, what must be said about its numbers."""
    entries, withheld = table.entries(study), why_withheld(study)
    columns, notes = unique(entry.column for entry in entries), _Notes(is_beside=withheld is None)
    lines = []
    for line in unique(entry.line for entry in entries):
        own = {entry.column: entry for entry in entries if entry.line == line}
        figures = [
            _figure(table, study, own[column], measure, finished, notes)
            for column in columns
            for measure in table.measures
        ]
        lines.append([LINES.get(line, line), *figures])
    text = [_heading(study, entries), "", markdown_table(["", *_titles(table, columns)], lines)]
    said = ["", withheld] if withheld else []
    return "\n".join([*text, *_estimates(table, study, withheld is None), *notes.lines(), *said]) + "\n"


def raw_csv(table: Table, studies: Sequence[Study], finished: FinishedCells) -> str:
    """Every entry and seed on a line of its own, unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["data", "backbone", "protocol", "split", "line", "column", "seed", *table.measures])
    for study in studies:
        for entry in table.entries(study):
            for cell in entry.cells:
                records = finished.records(cell)
                run = [study.name, network_words(study), study.protocol, records[-1]["split"], entry.line, entry.column]
                writer.writerow([*run, cell.seed, *(MEASURES[name].of(records) for name in table.measures)])
    return text.getvalue()


def _heading(study: Study, entries: Sequence[Entry]) -> str:
    """What was run, in a line; settings that differ from the protocol's are named."""
    asked = {entry.cells[0].config.query.budget for entry in entries}
    n_rounds = entries[-1].cells[0].config.query.rounds
    changed = flat({name: part for name, part in study.settings.items() if name in ("backbone", "train")})
    parts = [
        f"{study.n_old} old and {study.n_novel} novel classes",
        network_words(study),
        f"protocol {study.protocol}",
        *(f"{name}={value}" for name, value in changed.items() if name not in _IN_THE_NETWORKS_WORDS),
        *(["--quick: too short to believe"] if study.quick else []),
        f"{study.n_seeds} seed{'s' * (study.n_seeds > 1)}",
        *(f"{budget} questions a round" for budget in asked if len(asked) == 1),
        f"{n_rounds} rounds",
    ]
    return f"**{study.title}**: " + ", ".join(parts)


def _titles(table: Table, columns: Sequence[str]) -> list[str]:
    titles = []
    for column in columns:
        for name in table.measures:
            label, title = COLUMNS.get(column, column), MEASURES[name].title
            titles.append(title if not label else label if len(table.measures) == 1 else f"{label}: {title}")
    return titles


def _figure(table: Table, study: Study, entry: Entry, measure: str, finished: FinishedCells, notes: _Notes) -> str:
    values = [MEASURES[measure].of(finished.records(cell)) for cell in entry.cells]
    ours = mean_std(values, percent=MEASURES[measure].percent)
    theirs = paper_numbers(table.name, study.name, entry.line, entry.column) if notes.is_beside else None
    value = theirs.value(measure) if theirs else None
    return ours if theirs is None or value is None else f"{ours} (paper {value:g}{notes.mark(theirs)})"


class _Notes:
    """Footnotes about numbers of the paper that cannot be right, each said once; whether any stand beside ours."""

    def __init__(self, *, is_beside: bool) -> None:
        self.is_beside = is_beside
        self._said: list[str] = []

    def mark(self, number: PaperNumbers) -> str:
        if number.note is None:
            return ""
        if number.note not in self._said:
            self._said.append(number.note)
        return f" [{self._said.index(number.note) + 1}]"

    def lines(self) -> list[str]:
        return ["", *(f"[{i}] {note}" for i, note in enumerate(self._said, 1))] if self._said else []


def _estimates(table: Table, study: Study, is_beside: bool) -> list[str]:
    if not table.estimates:
        return []
    found = ", ".join(f"{e.n} (seed {seed})" for seed, e in enumerate(study.estimates))
    theirs = paper_estimate(study.name) if is_beside else None
    beside = f"; the paper estimates {theirs.estimated}" if theirs else ""
    return ["", f"Estimated number of classes: {found}; in truth {study.n_classes}{beside}."]
