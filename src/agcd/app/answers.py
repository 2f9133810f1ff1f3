"""Answers from people: read from a CSV, checked, stored as events, taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agcd.app.store.classes import ClassInfo, Registry, clean_class_name, clean_text
from agcd.app.store.events import PASSES, LabelEvent, Source, new_uid
from agcd.app.store.queries import StoredQuery, query_of_row
from agcd.app.store.store import Store
from agcd.data.tables import read_table
from agcd.errors import DataError


@dataclass(frozen=True)
class Answer:
    """What a person says about a row: the name of a class, or skip, unsure or junk. ``class_id`` names it for sure."""

    row: int
    says: str
    class_id: str | None = None


@dataclass(frozen=True)
class Told:
    """What became of some answers."""

    counts: dict[str, int]
    """How many of each kind were stored."""
    new_classes: tuple[str, ...]
    n_known: int
    """How many this person had given already."""
    is_repeat: bool = False
    """The same request came before, and nothing was stored again."""

    def lines(self) -> list[str]:
        """The same in words."""
        stored = ", ".join(f"{count} {kind}" for kind, count in self.counts.items()) or "nothing new"
        lines = [f"stored: {stored}" + (f"; {self.n_known} known already" if self.n_known else "")]
        return lines + ([f"new classes: {', '.join(self.new_classes)}"] if self.new_classes else [])


def question_table(query: StoredQuery, paths: Sequence[str]) -> dict[str, list[int] | list[str]]:
    """A query as columns, with an empty one for the answers."""
    return {
        "row": [question.row for question in query.questions],
        "path": [paths[question.row] for question in query.questions],
        "why": [question.reason for question in query.questions],
        "label": [""] * len(query.questions),
    }


def read_answers(file: Path, paths: Sequence[str]) -> list[Answer]:
    """The answers in a CSV with columns ``row`` or ``path`` (or both) and ``label``; empty labels are no answers."""
    row_of = {path: row for row, path in enumerate(paths)}
    answers: dict[int, Answer] = {}
    for line, cells in read_table(file, ("label",)):
        if not cells["label"].strip():
            continue
        answer = Answer(_row(file, line, cells, row_of, paths), cells["label"])
        known = answers.setdefault(answer.row, answer)
        if known != answer:
            said = f"{known.says!r} and {answer.says!r}"
            raise DataError(f"{file}, line {line}: row {answer.row} is answered twice, with {said}.")
    return list(answers.values())


def _row(file: Path, line: int, cells: dict[str, str], row_of: dict[str, int], paths: Sequence[str]) -> int:
    number, path = cells.get("row", "").strip(), cells.get("path", "")
    if not number:
        if path not in row_of:
            raise DataError(f"{file}, line {line}: {path!r} is not an image of this project.")
        return row_of[path]
    if not (number.isascii() and number.isdigit() and int(number) < len(paths)):
        raise DataError(f"{file}, line {line}: row is {number!r}; a number from 0 to {len(paths) - 1} is expected.")
    if path and paths[int(number)] != path:
        raise DataError(f"{file}, line {line}: row {number} is {paths[int(number)]!r}, not {path!r}.")
    return int(number)


def write_answers(
    store: Store,
    answers: Sequence[Answer],
    who: str,
    source: Source,
    *,
    uid: str | None = None,
    audit: bool = False,
    accept: bool = False,
) -> Told:
    """Store ``answers`` as one batch, all or none; a batch whose ``uid`` is known came before and counts once.

    ``audit``: they measure the model and are not learned from. ``accept``: accepted by page, they are no labels.
    """
    who = clean_text(who, "name of a person")
    with store.transaction():
        if uid is not None and store.knows(uid):
            return Told({}, (), 0, is_repeat=True)
        started = len(store.runs())
        # Before the first training every class is an old one, and every label known from the start.
        made = _new_classes(answers, store.registry(), who, source, old=started == 0)
        store.append(made)
        registry, group = store.registry(), uid or new_uid()
        events = [_event(store, registry, answer, who, source, started) for answer in answers]
        fresh = [replace(e, group=group) for e in events if not _said_before(store, registry, e)]
        if audit:
            fresh = [replace(event, payload={"audit": True}) for event in fresh]
        if accept:
            fresh = [replace(event, kind="accept") for event in fresh]
        store.append(fresh)
    names = tuple(event.payload["name"] for event in made)
    return Told(dict(Counter(event.kind for event in fresh)), names, len(events) - len(fresh))


def _new_classes(
    answers: Iterable[Answer], registry: Registry, who: str, source: Source, *, old: bool
) -> list[LabelEvent]:
    """The birth of every class that is named for the first time, in the order of naming."""
    made: dict[str, LabelEvent] = {}
    for answer in answers:
        if answer.class_id is not None or _passes(answer):
            continue
        name = clean_class_name(answer.says)
        if registry.find(name) is None and name.casefold() not in made:
            payload = {"name": name, "old": old}
            made[name.casefold()] = LabelEvent("create", who, source, class_id=new_uid(), payload=payload)
    return list(made.values())


def _event(store: Store, registry: Registry, answer: Answer, who: str, source: Source, started: int) -> LabelEvent:
    query_id, round_ = query_of_row(store, answer.row) or (None, started)
    event = LabelEvent("skip", who, source, row=answer.row, query_id=query_id, round=round_)
    if answer.class_id is None and _passes(answer):
        return replace(event, kind=answer.says.strip().casefold())  # type: ignore[arg-type]
    info = _class_meant(registry, answer)
    if info.retired:
        raise DataError(f"Class {info.name!r} is retired and takes no more labels.")
    return replace(event, kind="label", class_id=info.id)


def _class_meant(registry: Registry, answer: Answer) -> ClassInfo:
    if answer.class_id is None:
        info = registry.find(clean_class_name(answer.says))
        assert info is not None  # every name that was not known has just been made a class
        return info
    if answer.class_id not in registry.classes:
        raise DataError(f"There is no class with id {answer.class_id!r}.")
    return registry.resolve(answer.class_id)


def _said_before(store: Store, registry: Registry, event: LabelEvent) -> bool:
    assert event.row is not None
    last = store.last_answer(event.row, event.who)
    if last is None or last.kind != event.kind:
        return False
    return last.class_id is None or registry.resolve(last.class_id).id == event.class_id


def _passes(answer: Answer) -> bool:
    return answer.says.strip().casefold() in PASSES


@dataclass(frozen=True)
class Undone:
    """What was taken back; nothing where the same request came before."""

    events: tuple[LabelEvent, ...]

    @property
    def what(self) -> str:
        if not self.events:
            return "nothing: this was undone before"
        last = self.events[-1]
        counts = Counter(event.kind for event in self.events)
        what = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items())
        return f"{what} by {last.who} of {last.at[:16].replace('T', ' ')} UTC"


def undo_last(store: Store, who: str | None = None, uid: str | None = None) -> Undone:
    """Void the last thing that a person, or ``who``, did and that still stands."""
    with store.transaction():
        if uid is not None and store.knows(uid):
            return Undone(())
        undone = store.last_action(who)
        if not undone:
            raise DataError("There is nothing to undo.")
        last, target = undone[-1], undone[-1].group or undone[-1].uid
        void = LabelEvent("void", last.who, last.source, payload={"target": target}, uid=uid or new_uid())
        store.append([void])
    return Undone(tuple(undone))
