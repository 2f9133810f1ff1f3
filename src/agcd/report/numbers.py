"""The numbers of a story as a reader meets them: headline cards, a summary in words, tables of rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agcd.report.story import Estimate, RoundFacts, Story
from agcd.words import MISSING, count, decimal, interval, is_known, percent, points, rough_percent, shown, whole

MAX_CHANGES = 3
"""Changes of a round told at once; the others are folded away, so that the table stays a table."""


@dataclass(frozen=True)
class Card:
    """One big number; ``tone`` is "old", "new" or "" and picks its colour."""

    label: str
    value: str
    before: str = ""
    note: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Column:
    """A column of the table of rounds, and what its head means in plain words; ``{noun}`` is what a row is called."""

    field: str
    head: str
    meaning: str
    tell: Callable[[Any], str]
    tone: str = ""


def _told_audit(audit: Estimate | None) -> str:
    return f"{percent(audit.share)} ({interval(audit.low, audit.high)})" if audit else MISSING


COLUMNS = (
    Column("n_taught", "Labels", "labels that the model learned from, those known at the start included", whole),
    Column("n_classes", "Classes", "classes that had a name", whole),
    Column("named", "Named", "share of all {noun}s that lie in a group with a name", percent),
    Column(
        "audit",
        "Blind audit",
        "share of blindly answered {noun}s that the model names rightly, and its 95 % interval",
        _told_audit,
    ),
    Column("acc_all", "All", "share of all samples recognised correctly", percent),
    Column("acc_old", "Old", "the same among classes that had labels from the start", percent, "old"),
    Column("acc_new", "New", "the same among classes that nobody had labelled before", percent, "new"),
    Column("agreement", "Agreement", "share of labelled {noun}s that the model calls as people did", percent),
    Column("nov_coverage", "Nov-C", "coverage: share of the novel classes asked about at least once", decimal),
    Column("nov_ratio", "Nov-R", "ratio: share of the questions that met a novel class", decimal),
    Column("nov_uniformity", "Nov-U", "uniformity: 1 when the questions spread evenly over novel classes", decimal),
    Column("nov_information", "Nov-I", "information: ratio times uniformity", decimal),
    Column(
        "phase",
        "Phase",
        "confident: ask about sure samples, to name each new class; informative: ask where the model wavers",
        lambda phase: shown(phase, 24) if phase else MISSING,
    ),
    Column("mapping_diff", "Moved", "share of the classes for which another output of the model now stands", percent),
    Column(
        "regrouped", "Regrouped", "share of the {noun}s that lie in another group than in the round before", percent
    ),
    Column(
        "best_on_test",
        "Best on test",
        "highest accuracy over the epochs, picked by looking at the truth: for comparison with papers only",
        percent,
        "aside",
    ),
)


@dataclass(frozen=True)
class RoundLine:
    """One round in the table: its cells, and which classes moved, in words (the first few, then the rest)."""

    number: int
    n_labels: int
    cells: tuple[tuple[str, str], ...]
    """Text and tone of each cell."""
    changes: tuple[str, ...]
    more: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """The rounds of one way of asking; columns without a single figure are left out."""

    name: str
    columns: tuple[Column, ...]
    lines: tuple[RoundLine, ...]


def round_table(name: str, rounds: Sequence[RoundFacts], noun: str = "picture") -> Table:
    """The rounds as text."""
    columns = tuple(
        replace(column, meaning=column.meaning.format(noun=noun))
        for column in COLUMNS
        if any(_has(getattr(facts, column.field)) for facts in rounds)
    )
    lines = tuple(_line(facts, columns) for facts in rounds)
    return Table(shown(name, 40), columns, lines)


def _has(value: Estimate | str | float | None) -> bool:
    return bool(value) if isinstance(value, Estimate | str) else is_known(value)


def _line(facts: RoundFacts, columns: Sequence[Column]) -> RoundLine:
    cells = tuple((column.tell(getattr(facts, column.field)), column.tone) for column in columns)
    changes = tuple(shown(change, 300) for change in facts.mapping_changes)
    return RoundLine(facts.number, facts.n_labels, cells, changes[:MAX_CHANGES], changes[MAX_CHANGES:])


def cards(story: Story) -> list[Card]:
    """The headline: accuracies before → after where there is truth, else audit and agreement; classes and answers."""
    found = [
        _share_card(story, "acc_all", "All classes", ""),
        _share_card(story, "acc_old", "Old classes", "old"),
        _share_card(story, "acc_new", "Novel classes", "new"),
    ]
    if not any(found):
        found = [
            _right_card(story),
            _audit_card(story),
            _share_card(story, "agreement", "Agreement with your answers", ""),
        ]
    return [card for card in [*found, _classes_card(story), _answers_card(story)] if card]


def _right_card(story: Story) -> Card | None:
    right = story.accuracy
    if right is None:
        return None
    return Card(
        "Names that are right",
        f"about {rough_percent(right.share)}",
        note=f"{interval(right.low, right.high)}, from {count(right.n, f'checked {story.noun}')}",
    )


def share_of(facts: RoundFacts, field: str) -> float | None:
    """A share by the name of its field; of an estimate, the share found."""
    value = getattr(facts, field)
    return value.share if isinstance(value, Estimate) else value


def _audit_card(story: Story) -> Card | None:
    audit = story.rounds[-1].audit if story.rounds else None
    card = _share_card(story, "audit", "Right in the blind audit", "")
    return (
        replace(card, note=f"of {audit.n:,}; 95 % interval {interval(audit.low, audit.high)}")
        if card and audit
        else None
    )


def _share_card(story: Story, field: str, label: str, tone: str) -> Card | None:
    values = [value for value in (share_of(facts, field) for facts in story.rounds) if is_known(value)]
    if not values:
        return None
    if len(values) == 1:
        return Card(label, percent(values[0]), tone=tone)
    return Card(label, percent(values[-1]), percent(values[0]), points(values[0], values[-1]), tone)


def _classes_card(story: Story) -> Card | None:
    if not story.has_truth:
        return _named_card(story) if story.classes else None
    found = [strip for strip in story.classes if strip.size > 0]
    n_new, n_unnamed = sum(strip.is_new for strip in found), sum(not strip.is_named for strip in found)
    note = f"{n_new:,} of them novel" + (f", {n_unnamed:,} without a name" if n_unnamed else "")
    return Card("Classes found", f"{len(found):,}", note=note) if story.classes else None


def _named_card(story: Story) -> Card:
    """Classes with a name, and groups that wait for one."""
    named = [strip for strip in story.classes if strip.is_named]
    n_found, n_unnamed = sum(strip.is_new for strip in named), len(story.classes) - len(named)
    note = f"{len(named) - n_found:,} known, {n_found:,} found by you"
    waiting = f"; {count(n_unnamed, 'group')} without a name" if n_unnamed else ""
    return Card("Classes", f"{len(named):,}", note=note + waiting)


def _answers_card(story: Story) -> Card | None:
    if not story.rounds:
        return None
    n_asked = sum(facts.number > 0 for facts in story.rounds)
    return Card(
        "Answers given",
        f"{story.rounds[-1].n_labels:,}",
        note=f"in {count(n_asked, 'round')}" if n_asked else "no round yet",
    )


def summary(story: Story) -> str:
    """What happened, in two or three plain sentences; empty when nothing was measured."""
    if not story.rounds:
        return ""
    last = story.rounds[-1]
    start = f"After {count(last.n_labels, 'answer')}, " if last.n_labels else "Before the first answer, "
    if is_known(last.acc_all):
        told = start + f"the model recognises {percent(last.acc_all)} of the samples" + _since(story, "acc_all")
        if is_known(last.acc_new):
            told += f" Among the novel classes it is {percent(last.acc_new)}" + _since(story, "acc_new")
        return told + _against_rivals(story)
    told = _without_truth(story, last)
    return start + told if told else ""


def _without_truth(story: Story, last: RoundFacts) -> str:
    """What audit and agreement say; empty when there is neither."""
    told = []
    if story.accuracy:
        right = story.accuracy
        told.append(f"about {rough_percent(right.share)} of the names are right ({interval(right.low, right.high)}).")
    if last.audit:
        who = "The model" if told else "the model"
        told.append(
            f"{who} is right on {percent(last.audit.share)} of {count(last.audit.n, story.noun)} drawn at random and "
            f"answered blind (95 % interval {interval(last.audit.low, last.audit.high)})" + _since(story, "audit")
        )
    if is_known(last.agreement):
        who = "It" if last.audit else "The model" if told else "the model"
        told.append(f"{who} calls {percent(last.agreement)} of the labelled {story.noun}s as people did")
        told[-1] += _since(story, "agreement")
    return " ".join(told)


def _since(story: Story, field: str) -> str:
    """How a share changed since the start, as the end of a sentence."""
    before, after = share_of(story.rounds[0], field), share_of(story.rounds[-1], field)
    if len(story.rounds) < 2 or not is_known(before) or not is_known(after):
        return "."
    if percent(before) == percent(after):
        return ", as at the start."
    return f", {'up' if after > before else 'down'} from {percent(before)} at the start."


def _against_rivals(story: Story) -> str:
    """The rivals' accuracy with exactly as many answers; unequal budgets are not compared."""
    n_labels = story.rounds[-1].n_labels
    told = []
    for name, rounds in list(story.rivals.items())[:3]:
        equal = [f.acc_all for f in rounds if f.n_labels == n_labels and is_known(f.acc_all)]
        if equal:
            told.append(f"{shown(name, 30)} {percent(equal[-1])}")
    return f" With as many answers: {', '.join(told)}." if told else ""
