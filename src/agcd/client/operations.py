"""Every operation of the REST API as a method: one request, and its answer as the model that the server made it from.

What they mean is told in docs/api.md and beside the models (``agcd.app.web.schemas``); ``tests/client`` compares them
with the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel, TypeAdapter, ValidationError

from agcd.app.web import board_schemas, review_schemas, schemas
from agcd.client.transport import Query, Transport
from agcd.errors import DataError

API = "/api/v1"
T = TypeVar("T")
Value = str | int | bool | Sequence[int] | None


class Operations:
    """The routes of a page, under the name of one person."""

    def __init__(self, transport: Transport, who: str) -> None:
        self.transport, self.who = transport, who
        self._holder = uuid4().hex  # questions are leased to this client

    def state(self) -> schemas.State:
        """Where the project stands."""
        return self._get("/state", schemas.State)

    def question(
        self, *, live: bool = True, blind: bool = False, audit: bool = False, answered: Sequence[int] = ()
    ) -> schemas.Card:
        """The next question; its ``row`` is None when nothing is left to ask.

        ``live``: decided now, after all answers so far; otherwise one of the last explicit round.
        """
        given = {"who": self.who, "holder": self._holder}
        return self._get(
            "/question", schemas.Card, **given, live=live, blind=blind, audit=audit, answered=list(answered)
        )

    def send_answers(
        self, answers: Sequence[schemas.Said], *, is_audit: bool = False, uid: str | None = None
    ) -> schemas.Told:
        """Store answers that belong together: they are undone together."""
        body = made(schemas.Answers, uid=_uid(uid), who=self.who, answers=list(answers), is_audit=is_audit)
        return self._post("/answers", body, schemas.Told)

    def undo(self, *, uid: str | None = None) -> schemas.Undone:
        """Take back the last thing that this person did and that still stands."""
        return self._post("/undo", made(schemas.Undo, uid=_uid(uid), who=self.who), schemas.Undone)

    def figures(self) -> schemas.Figures | None:
        """How good the names are now; None until the items are looked at."""
        return self._get("/figures", schemas.Figures | None)  # type: ignore[arg-type]

    def rounds(self) -> schemas.Rounds:
        """Every round so far, and what the next answers may buy."""
        return self._get("/rounds", schemas.Rounds)

    def neighbours(self, row: int, n: int = 12) -> list[schemas.Thumb]:
        """The items most like one that have no answer yet."""
        return self._get(f"/rows/{row}/neighbours", list[schemas.Thumb], n=n)

    def ask_about(self, rows: Sequence[int], *, uid: str | None = None) -> board_schemas.Queued:
        """Ask about these rows next."""
        body = made(board_schemas.ToQueue, uid=_uid(uid), who=self.who, rows=list(rows))
        return self._post("/queue", body, board_schemas.Queued)

    def ask_about_border(self, key: str, n: int = 5, *, uid: str | None = None) -> board_schemas.Queued:
        """Ask about the border cases of a card."""
        body = made(board_schemas.ToQueue, uid=_uid(uid), who=self.who, key=key, n=n)
        return self._post("/queue", body, board_schemas.Queued)

    def start_audit(self, n: int = 30, *, uid: str | None = None) -> board_schemas.Queued:
        """Draw a random sample, to be answered blind."""
        return self._post("/audit", made(schemas.StartAudit, uid=_uid(uid), n=n), board_schemas.Queued)

    def release_audit(self, *, uid: str | None = None) -> board_schemas.Queued:
        """Let training learn from the answers of the audits so far."""
        return self._post("/audit/release", made(schemas.Release, uid=_uid(uid), who=self.who), board_schemas.Queued)

    def review(
        self,
        mode: Literal["single", "class"] = "single",
        *,
        key: str | None = None,
        n: int | None = None,
        hidden: Sequence[int] = (),
    ) -> review_schemas.Review:
        """What nobody has looked at, the least certain first; ``hidden``: rows that are shown or answered already."""
        return self._get("/review", review_schemas.Review, mode=mode, key=key, n=n, **{"except": list(hidden)})

    def confirm(
        self,
        mode: Literal["single", "class"],
        *,
        right: Sequence[review_schemas.ShownAs] = (),
        changes: Sequence[review_schemas.Change] = (),
        junk: Sequence[int] = (),
        uid: str | None = None,
    ) -> review_schemas.Confirmed:
        """Store what a person says of the items of a review that were shown."""
        said = {"right": list(right), "changes": list(changes), "junk": list(junk)}
        body = made(review_schemas.Confirm, uid=_uid(uid), who=self.who, mode=mode, **said)
        return self._post("/review/confirm", body, review_schemas.Confirmed)

    def accept_rest(self, n: int, *, uid: str | None = None) -> review_schemas.RestAccepted:
        """Everything that is left, at most ``n``, counts as what it is called now."""
        body = made(review_schemas.AcceptRest, uid=_uid(uid), who=self.who, n=n)
        return self._post("/review/accept", body, review_schemas.RestAccepted)

    def classes(self) -> list[schemas.ClassName]:
        """Every class that people named."""
        return self._get("/names", list[schemas.ClassName])

    def board(self, page: int = 0, *, sort: str = "size", text: str = "", view: str = "auto") -> board_schemas.Board:
        """A page of the class board: classes, and groups without a name."""
        return self._get("/board", board_schemas.Board, page=page, sort=sort, text=text, view=view)

    def members(self, key: str, *, order: str = "typical", page: int = 0) -> board_schemas.Members:
        """More members of a card."""
        return self._get("/members", board_schemas.Members, key=key, order=order, page=page)

    def alike(self) -> list[board_schemas.Alike]:
        """Pairs of classes that may be one, the strongest first."""
        return self._get("/classes/alike", list[board_schemas.Alike])

    def merge_preview(self, one: str, into: str) -> board_schemas.MergePreview:
        """Two cards side by side, and what merging them would do."""
        return self._get("/classes/merge-preview", board_schemas.MergePreview, one=one, into=into)

    def split_preview(self, key: str) -> board_schemas.SplitPreview:
        """The two halves that 2-means finds in a card."""
        return self._get("/classes/split-preview", board_schemas.SplitPreview, key=key)

    def rename(self, class_id: str, name: str, *, uid: str | None = None) -> board_schemas.Changed:
        """Call a class otherwise."""
        body = made(board_schemas.Rename, uid=_uid(uid), who=self.who, class_id=class_id, name=name)
        return self._post("/classes/rename", body, board_schemas.Changed)

    def merge(self, class_id: str, into: str, *, uid: str | None = None) -> board_schemas.Changed:
        """Everything said of one class counts for another from now on."""
        body = made(board_schemas.Merge, uid=_uid(uid), who=self.who, class_id=class_id, into=into)
        return self._post("/classes/merge", body, board_schemas.Changed)

    def retire(self, class_id: str, *, uid: str | None = None) -> board_schemas.Changed:
        """The class keeps its labels and takes no more."""
        body = made(board_schemas.Retire, uid=_uid(uid), who=self.who, class_id=class_id)
        return self._post("/classes/retire", body, board_schemas.Changed)

    def grow(self, key: str, order: str, *, page: int = 0, per_page: int | None = None) -> board_schemas.Grow:
        """Candidates for a class by falling similarity; page 0 fixes their order under the name ``order``."""
        return self._get("/grow", board_schemas.Grow, key=key, order=order, page=page, per_page=per_page)

    def accept(
        self,
        key: str,
        order: str,
        last_row: int,
        *,
        class_id: str | None = None,
        name: str | None = None,
        except_rows: Sequence[int] = (),
        uid: str | None = None,
    ) -> board_schemas.Accepted:
        """Give all candidates of ``grow`` up to ``last_row`` to a class; kept apart from labels."""
        given = {"key": key, "order": order, "last_row": last_row, "class_id": class_id, "name": name}
        body = made(board_schemas.Accept, uid=_uid(uid), who=self.who, except_rows=list(except_rows), **given)
        return self._post("/accept", body, board_schemas.Accepted)

    def grid(
        self,
        page: int = 0,
        *,
        show: str = "all",
        order: str = "row",
        key: str | None = None,
        selection: str | None = None,
        text: str = "",
        folder: str | None = None,
        who: str | None = None,
        round: int | None = None,
        sure: Literal["sure", "unsure"] | None = None,
    ) -> board_schemas.Grid:
        """A page of items; ``show``: all, unlabelled, labelled, accepted, junk, passed, disagree or selection."""
        chosen: dict[str, Value] = {"key": key, "selection": selection, "text": text, "folder": folder}
        chosen |= {"who": who, "round": round, "sure": sure}
        return self._get("/grid", board_schemas.Grid, page=page, show=show, order=order, **chosen)

    def grid_choices(self) -> board_schemas.GridChoices:
        """The folders, classes, people and rounds that the grid can be narrowed to."""
        return self._get("/grid/choices", board_schemas.GridChoices)

    def select(self, rows: Sequence[int]) -> board_schemas.SelectionId:
        """Keep rows under an id, by which the grid shows them."""
        return self._post("/selections", made(board_schemas.Selection, rows=list(rows)), board_schemas.SelectionId)

    def map(self, round: int | None = None) -> board_schemas.MapPoints:
        """At most 20,000 items as points."""
        return self._get("/map", board_schemas.MapPoints, round=round)

    def look(self, row: int) -> board_schemas.Look:
        """One item: its file, what it counts as, and what it may be called."""
        return self._get(f"/rows/{row}", board_schemas.Look)

    def item(self, row: int, v: str = "") -> schemas.Item:
        """A text or record at full length."""
        return self._get(f"/items/{row}", schemas.Item, v=v)

    def picture(self, row: int, size: int = 320, v: str = "") -> bytes:
        """A picture as JPEG, 96, 160, 320 or 1024 pixels long."""
        return self.transport.send("GET", f"/image/{row}", _query({"size": size, "v": v}))

    def job(self) -> schemas.Job:
        """What runs in the background, and how far it is."""
        return self._get("/job", schemas.Job)

    def start_job(self, kind: str, n_questions: int | None = None) -> schemas.Job:
        """Begin work in the background: start, train, grow, prepare, round or export."""
        body = made(schemas.StartJob, kind=kind, n_questions=n_questions)
        return self._post("/job", body, schemas.Job, repeatable=False)

    def cancel_job(self) -> schemas.Job:
        """Stop the work; what is finished stays."""
        return _read(schemas.Job, self.transport.send("DELETE", f"{API}/job"))

    def choose_n_classes(self, n: int) -> schemas.State:
        """Overrule the number of classes to look for, before the first training."""
        return self._post("/n-classes", made(schemas.ChooseClasses, n=n), schemas.State)

    def folders(self) -> schemas.Folders:
        """Whether the items are sorted into folders, how far that is, and where they lie."""
        return self._get("/folders", schemas.Folders)

    def sort_into_folders(
        self, how: str = "copy", *, only_checked: bool = False, uid: str | None = None
    ) -> schemas.Folders:
        """Begin to sort the items into a folder per class, on the machine of the server."""
        body = made(schemas.SortIntoFolders, uid=_uid(uid), how=how, only_checked=only_checked)
        return self._post("/folders", body, schemas.Folders)

    def files(self) -> list[str]:
        """The files that can be downloaded now."""
        return self._get("/export", list[str])

    def download(self, name: str) -> bytes:
        """One of them."""
        return self.transport.send("GET", f"{API}/export/{quote(name, safe='')}")

    def _get(self, path: str, shape: type[T], **query: Value) -> T:
        return _read(shape, self.transport.send("GET", API + path, _query(query)))

    def _post(self, path: str, body: BaseModel, shape: type[T], *, repeatable: bool = True) -> T:
        sent = body.model_dump_json(exclude_none=True).encode()
        return _read(shape, self.transport.send("POST", API + path, body=sent, repeatable=repeatable))


def _uid(given: str | None) -> str:
    return given or uuid4().hex


def made(model: type[T], **values: Any) -> T:
    """A request; a value that the server would refuse is refused here, in one sentence."""
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where, what = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise DataError(f"{where}: {what}." if where else f"{what}.") from None


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def _read(shape: type[T], answer: bytes) -> T:
    found: T = _adapter(cast(Any, shape)).validate_json(answer)
    return found


def _query(values: dict[str, Value]) -> Query:
    """As pairs: None is left out, a sequence stands once for each of its values."""
    pairs: list[tuple[str, str | int]] = []
    for name, value in values.items():
        if isinstance(value, bool):
            pairs.append((name, str(value).lower()))
        elif isinstance(value, (str, int)):
            pairs.append((name, value))
        elif value is not None:
            pairs.extend((name, int(one)) for one in value)
    return pairs
