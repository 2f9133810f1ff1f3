"""What people change: answers, read from a CSV or sent by the page, taken back; classes renamed, merged, retired.

Everything is one event or one group of them, checked against what is known, and can be undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agcd.app.labels import How, LabelView
from agcd.app.project import Project
from agcd.app.store.classes import ClassInfo, Registry, clean_class_name, clean_text
from agcd.app.store.events import PASSES, Kind, LabelEvent, Source, new_uid
from agcd.app.store.queries import DRAWN, StoredQuery, asked
from agcd.data.tables import read_table
from agcd.errors import DataError


class TooManyClasses(DataError):
    """Answers that would make more classes at once than is allowed."""


@dataclass(frozen=True)
class Answer:
    """What a person says about a row: the name of a class, or skip, unsure or junk. ``class_id`` names it for sure."""

    row: int
    says: str
    class_id: str | None = None
    by_page: bool = False
    """Looked over among others and not objected to: accepted by page, it is no label."""
    unseen: bool = False
    """Accepted by page, and nobody looked at it: that says nothing about whether it is right."""


@dataclass(frozen=True)
class Told:
    """What became of some answers."""

    counts: dict[str, int]
    """How many of each kind were stored."""
    new_classes: tuple[ClassInfo, ...]
    n_known: int
    """How many this person had given already."""
    is_repeat: bool = False
    """The same request came before, and nothing was stored again."""

    def lines(self) -> list[str]:
        """The same in words."""
        stored = ", ".join(f"{count} {kind}" for kind, count in self.counts.items()) or "nothing new"
        lines = [f"stored: {stored}" + (f"; {self.n_known} known already" if self.n_known else "")]
        return lines + (
            [f"new classes: {', '.join(made.name for made in self.new_classes)}"] if self.new_classes else []
        )


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
            raise DataError(f"{file}, line {line}: {path!r} is not in this project.")
        return row_of[path]
    if not (number.isascii() and number.isdigit() and len(number) < 19 and int(number) < len(paths)):
        raise DataError(
            f"{file}, line {line}: row is {number[:40]!r}; a number from 0 to {len(paths) - 1} is expected."
        )
    if path and paths[int(number)] != path:
        raise DataError(f"{file}, line {line}: row {number} is {paths[int(number)]!r}, not {path!r}.")
    return int(number)


def write_answers(
    project: Project,
    answers: Sequence[Answer],
    who: str = "me",
    source: Source = "import",
    *,
    uid: str | None = None,
    audit: bool = False,
    accept: bool = False,
    most_new: int | None = None,
) -> Told:
    """Store ``answers`` as one batch, all or none; a batch whose ``uid`` is known came before and counts once.

    ``audit``: they measure the model and are not learned from. ``accept``: all of them are ``by_page``. ``most_new``:
    how many classes they may name for the first time; any number by default.
    """
    who, store = clean_text(who, "name of a person"), project.store
    with store.transaction():
        if uid is not None and store.knows(uid):
            return Told({}, (), 0, is_repeat=True)
        view, (queries, n_begun) = project.labels(), asked(store, [answer.row for answer in answers])
        # Before the first training every class is an old one, and every label known from the start.
        made = _new_classes(answers, view.registry, who, source, old=n_begun == 0)
        if most_new is not None and len(made) > most_new:
            n_made = f"These answers would make {len(made):,} new classes"
            raise TooManyClasses(f"{n_made}; at most {most_new} are allowed at once: send them in parts.")
        said = _Saying(view, view.registry.after(made), who, source, uid or new_uid(), queries, n_begun)
        events = [(said.event(answer), answer) for answer in answers]
        fresh = [
            _meant(event, audit=audit, accept=accept or answer.by_page, unseen=answer.unseen)
            for event, answer in events
            if not said.is_known(event)
        ]
        view.check([*made, *fresh])
        store.append([*made, *fresh])
    infos = tuple(ClassInfo(str(event.class_id), event.payload["name"], event.payload["old"]) for event in made)
    return Told(dict(Counter(event.kind for event in fresh)), infos, len(events) - len(fresh))


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


@dataclass(frozen=True)
class _Saying:
    """One batch of answers in the making: what is known, and who says it."""

    view: LabelView
    registry: Registry
    """With the classes that the batch makes."""
    who: str
    source: Source
    group: str
    queries: Mapping[int, tuple[str, int, str]]
    """The last query that asked about a row, the round of its answers, and why it asked."""
    n_begun: int

    def event(self, answer: Answer) -> LabelEvent:
        query_id, round_, why = self.queries.get(answer.row, (None, self.n_begun, ""))
        payload = {"drawn": True} if why == DRAWN else {}
        event = LabelEvent("skip", self.who, self.source, answer.row, None, query_id, round_, self.group, payload)
        if answer.class_id is None and _passes(answer):
            return replace(event, kind=answer.says.strip().casefold())  # type: ignore[arg-type]
        info = self._class_meant(answer)
        if info.retired:
            raise DataError(f"Class {info.name!r} is retired and takes no more labels.")
        return replace(event, kind="label", class_id=info.id)

    def _class_meant(self, answer: Answer) -> ClassInfo:
        if answer.class_id is not None:
            return self.registry.resolve(self.registry.get(answer.class_id).id)
        info = self.registry.find(clean_class_name(answer.says))
        assert info is not None  # every name that was not known has just been made a class
        return info

    def is_known(self, event: LabelEvent) -> bool:
        """Whether this person has said the same of the row already."""
        assert event.row is not None
        last = self.view.answer_of(event.row, event.who)
        if last is None or last.kind != event.kind:
            return False
        return last.class_id is None or self.registry.resolve(last.class_id).id == event.class_id


def _meant(event: LabelEvent, *, audit: bool, accept: bool, unseen: bool) -> LabelEvent:
    if accept:
        return replace(event, kind="accept", payload=event.payload | ({"unseen": True} if unseen else {}))
    return replace(event, payload=event.payload | {"audit": True}) if audit else event


def _passes(answer: Answer) -> bool:
    return answer.says.strip().casefold() in PASSES


def release_audit(project: Project, who: str = "me", uid: str | None = None) -> int:
    """Let training learn what was answered blind from now on; how many answers that are."""
    who, store = clean_text(who, "name of a person"), project.store
    with store.transaction():
        if uid is not None and store.knows(uid):
            return 0
        view, group = project.labels(), uid or new_uid()
        held = [event for row in view.rows((How.HELD,)).tolist() if (event := view.answer(row))]
        if not held:
            raise DataError("There are no answers of an audit to learn from.")
        released = [
            LabelEvent("label", who, "human", e.row, e.class_id, e.query_id, e.round, group, {"drawn": True})
            for e in held
        ]
        project.log.append(store, released)
    return len(released)


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


def undo(project: Project, who: str | None = None, uid: str | None = None) -> Undone:
    """Void the last thing that a person, or ``who``, did and that still stands."""
    store, who = project.store, None if who is None else clean_text(who, "name of a person")
    with store.transaction():
        if uid is not None and store.knows(uid):
            return Undone(())
        undone = project.labels().last_action(who)
        if not undone:
            raise DataError("There is nothing to undo.")
        last, target = undone[-1], undone[-1].group or undone[-1].uid
        void = LabelEvent("void", last.who, last.source, payload={"target": target}, uid=uid or new_uid())
        project.log.append(store, [void])
    return Undone(tuple(undone))


# ------------------------------------------------------------------------------------------- changes of classes


def rename_class(project: Project, class_id: str, name: str, who: str = "me", uid: str | None = None) -> bool:
    """Call a class otherwise; its old name stays an alias. Whether this was done now, not by an earlier request."""
    return _change(project, "rename", class_id, {"name": clean_class_name(name)}, who, uid)


def merge_classes(project: Project, class_id: str, into: str, who: str = "me", uid: str | None = None) -> bool:
    """Everything said of ``class_id`` counts for ``into`` from now on."""
    registry = project.labels().registry
    return _change(project, "merge", class_id, {"into": registry.resolve(registry.get(into).id).id}, who, uid)


def retire_class(project: Project, class_id: str, who: str = "me", uid: str | None = None) -> bool:
    """The class keeps its labels and takes no more."""
    return _change(project, "retire", class_id, {}, who, uid)


def find_class(project: Project, name: str) -> ClassInfo:
    """The class that is called ``name`` now, or was once."""
    found = project.labels().registry.find(name)
    if found is None:
        raise DataError(f"There is no class called {name!r}.")
    return found


def _change(project: Project, kind: Kind, class_id: str, payload: dict[str, str], who: str, uid: str | None) -> bool:
    who, store = clean_text(who, "name of a person"), project.store
    with store.transaction():
        if uid is not None and store.knows(uid):
            return False
        info = project.labels().registry.get(class_id)
        if info.merged_into is not None:
            raise DataError(f"Class {info.name!r} was merged into another one: change that one.")
        event = LabelEvent(kind, who, "human", class_id=class_id, payload=payload, uid=uid or new_uid())
        project.log.append(store, [event])
        return True
