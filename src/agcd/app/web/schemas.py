"""What travels between the page and the server: requests and answers of the REST API. Those of the pages that show many
pictures are in ``board_schemas``, those of the review in ``review_schemas``.

A *key* names a card of the class board: ``c-<class id>`` is a class that people named, ``s-<slot>`` a group that the
last model found and nobody has named. Rows are numbers; the picture of row 7 is ``/image/7?size=160&v=<its v>``.
Every request that changes something carries a ``uid`` made by the client, so that sending it twice counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Uid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$", description="Made by the client; repeated = counts once.")]
Who = Annotated[str, Field(min_length=1, max_length=60, description="The person who says it.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ClassId = Annotated[str, Field(pattern=r"^[a-f0-9]{32}$")]
Key = Annotated[str, Field(pattern=r"^(c-[a-f0-9]{32}|s-[0-9]{1,6})$")]
Row = Annotated[int, Field(ge=0, le=10**12)]
MAX_ROWS = 20_000
"""Rows in one request."""
MAX_NEW_CLASSES = 200
"""Classes that one request may name for the first time."""


class Request(BaseModel):
    """A request body: unknown fields are refused, and so is ``"3"`` or ``false`` where a number is meant."""

    model_config = ConfigDict(extra="forbid", strict=True)


def check_each_once(rows: Sequence[int]) -> None:
    """Refuse two answers of one person for one picture: nobody could say which is meant."""
    if len(set(rows)) < len(rows):
        raise ValueError("A row is named twice: say one thing of each")


class Answer(BaseModel):
    """An answer of the server."""

    model_config = ConfigDict(from_attributes=True)


class Thumb(Answer):
    """One picture: where it stands and who says so."""

    row: int
    v: str
    """Changes with the content, so that browsers may keep the picture."""
    path: str = ""
    """Of its file, as the project knows it; of a text or record, where it is from."""
    text: str = ""
    """An excerpt on one line of what is no picture."""
    has_picture: bool = True
    name: str | None = None
    """The class it counts as now: a person's, one accepted by page, or what the answers so far say."""
    by: Literal["human", "page", "answers", "model"] | None = None
    probability: float | None = None
    """The chance that the name is right; None where nobody has worked it out."""


class Cell(Answer):
    name: str
    value: str


class Item(Answer):
    """GET /api/v1/items/{row}: a row at full length, where it is more than a picture."""

    row: int
    text: str
    cells: list[Cell]
    link: str
    """An http or https address, or empty."""
    has_picture: bool


class Estimate(Answer):
    """How many classes the images seem to hold (Max-ACC), and the numbers that explain the labels nearly as well."""

    n: int
    low: int
    high: int
    curve: list[tuple[int, float]]
    """Tried number of classes and the accuracy on labelled rows, by rising number."""


class Agreed(Answer):
    n_rows: int
    share: float | None


class State(Answer):
    """GET /api/v1/state: where the project stands. Cheap; the page asks for it after every answer."""

    name: str
    noun: str
    """What one row is called: picture, text, record."""
    n_images: int
    n_test: int
    n_set_aside: int
    n_seeds: int
    """Pictures whose label was known from the start."""
    n_labelled: int
    """Pictures that people labelled since."""
    n_answers: int
    """Labels that people gave: what the budget counts; two people may label one picture."""
    n_accepted: int
    n_audit: int
    """Pictures answered in a blind audit."""
    n_passed: int
    n_junk: int
    n_removed: int
    """Pictures that are held out for good; no other count has them."""
    n_unseen: int
    """Pictures that were added and not looked at yet."""
    n_questions: int
    """Questions of the present query, and how many of them are still open."""
    n_open: int
    n_audit_open: int
    n_classes: int
    """Classes that somebody named, and how many of those are new ones."""
    n_novel: int
    n_slots: int | None
    """Classes looked for; None until it is given or estimated."""
    n_finished: int
    """Rounds done, base training included."""
    in_training: bool
    """A round was begun and is not finished."""
    is_due: bool
    """Whether a new round would have something to learn."""
    estimate: Estimate | None
    n_slots_fixed: bool
    """Training has begun: the number of classes only grows by naming them."""
    health: list[str] = []
    agreement: Agreed
    n_new_answers: int
    """Answers that no round has learned from yet."""
    last_event: int
    is_live: bool = False
    """The pictures are looked at: live questions can be asked, and every answer counts at once."""
    view: int | None = None
    """The number of the round whose features are used now; −1 before the first training."""
    trains_itself: bool = False
    """Training starts by itself when enough has been answered."""


class Accuracy(Answer):
    mean: float
    low: float
    high: float


class Bought(Answer):
    n_answers: int
    n_changed: int
    n_expected: int | None
    n_next: int


class Figures(Answer):
    """GET /api/v1/figures: how good the names are now. Pictures are those that had no label at the start."""

    n_pictures: int
    n_checked: int
    """Named or accepted by a person."""
    accuracy: Accuracy | None
    """The share with the right name and its 90 % interval; None while too few answers have checked it."""
    n_checks: int
    n_checks_needed: int
    n_wrong: float
    """Wrong names to be expected among what nobody has checked."""
    n_unsure: int
    n_unnamed: int
    unseen: list[str]
    lost: list[str]
    bought: Bought | None
    noun: str
    headline: str
    sentences: list[str]
    last_event: int


class ShownGroup(Answer):
    """A class, or a group that nobody has named."""

    key: str
    class_id: str | None
    slot: int | None
    """None for a class that the last model does not know yet."""
    name: str
    """Its name, or "unnamed #17"."""
    is_named: bool
    is_new: bool
    size: int


class Candidate(ShownGroup):
    """One class that the model holds possible for a picture."""

    probability: float
    exemplars: list[Thumb]
    """At most six; those labelled by people first."""


class Card(Answer):
    """GET /api/v1/question: one question, leased to this browser. ``row`` is None when nothing is left to ask."""

    row: int | None
    v: str = ""
    query_id: str = ""
    why: str = ""
    number: int = 0
    """Which question of how many."""
    of: int = 0
    group: str = ""
    """The name of the predicted class: questions of one group come together."""
    candidates: list[Candidate] = []
    """At most five, the most probable first; none in blind mode and in an audit."""
    labelled_neighbours: list[Thumb] = []
    neighbours: list[Thumb] = []
    upcoming: list[Thumb] = []
    """The pictures of the next ten questions, to be fetched ahead."""
    is_blind: bool = False
    is_audit: bool = False
    held_by_others: int = 0
    """Questions that are open but in other hands, when ``row`` is None."""
    path: str = ""
    """Of the picture's file."""
    text: str = ""
    has_picture: bool = True
    is_live: bool = False
    is_drawn: bool = False
    """Drawn at random, to check how good the names are."""
    seems_new: bool = False
    """It lies in a group that no answer explains, so that the first candidate is likely to be wrong."""


class Said(Request):
    """What is said about one row: a class by id or by name (a new name makes a class), or why there is none."""

    row: Row
    kind: Literal["label", "skip", "unsure", "junk"]
    class_id: ClassId | None = None
    name: Name | None = None


class Answers(Request):
    """POST /api/v1/answers: one answer, or many that are stored and undone together; each row once, and at most 200 new
    names."""

    uid: Uid
    who: Who
    answers: Annotated[list[Said], Field(min_length=1, max_length=MAX_ROWS)]
    is_audit: bool = False
    """Answers of a blind audit are not trained on."""

    @model_validator(mode="after")
    def _each_row_once(self) -> Self:
        check_each_once([said.row for said in self.answers])
        return self


class NewClass(Answer):
    class_id: str
    name: str


class Told(Answer):
    """What became of the answers."""

    stored: dict[str, int]
    n_known: int
    """How many this person had given already."""
    new_classes: list[NewClass]
    is_repeat: bool
    """The same request came before: nothing was stored again."""
    state: State


class Undo(Request):
    """POST /api/v1/undo: take back the last thing that this person did and that still stands."""

    uid: Uid
    who: Who


class Undone(Answer):
    what: str
    """In words: "1 label by ann of 2026-01-01 10:00 UTC"."""
    row: int | None
    """The row, where it was one answer."""
    is_repeat: bool
    state: State


class ClassName(Answer):
    """GET /api/v1/names: everything that can be searched for by typing."""

    class_id: str
    name: str
    aliases: list[str]
    is_new: bool
    is_retired: bool
    n_labels: int
    size: int
    exemplar: Thumb | None


class AuditScore(Answer):
    """What a blind sample says about the model: right answers, and the 95 % interval of the share."""

    n: int
    n_right: int
    share: float
    low: float
    high: float


class RoundCard(Answer):
    number: int
    """0 is base training."""
    n_labels: int
    n_answers: int
    n_classes: int
    n_slots: int
    n_named: int
    """Groups with a name after the round; the share of pictures in them."""
    named_share: float
    agreement: float | None
    """Share of the people's labels that the model would give too."""
    moved_share: float | None
    """Share of the pictures that changed their class against the round before."""
    changes: list[str]
    """What changed in the mapping, in words."""
    audit: AuditScore | None
    seconds: float
    strategy: str | None
    """How the questions before this round were chosen."""


class Forecast(Answer):
    """What the next answers are likely to buy, in words, with the numbers behind it."""

    sentences: list[str]


class Rounds(Answer):
    """GET /api/v1/rounds"""

    rounds: list[RoundCard]
    forecast: Forecast
    n_audit_open: int


class Job(Answer):
    """GET /api/v1/job: the work that runs in the background; the page asks every second."""

    state: Literal["idle", "running", "done", "failed", "cancelled"]
    kind: Literal["prepare", "round", "export", "start", "train", "grow"] | None = None
    stage: str = ""
    """In words: "reading images", "estimating the number of classes", "training round 2", "choosing questions"."""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    left: float | None = None
    """Seconds that this stage is likely to take yet."""
    error: str | None = None
    loss: list[float] = []
    """Of the epochs so far."""


class StartJob(Request):
    """POST /api/v1/job: "start" makes the first live question possible and then trains for the first time; "train"
    trains on all answers, for the live loop. "prepare" reads the images and estimates the number of classes; "round"
    trains on all answers and chooses the questions of the next explicit round; "export" writes the classifier files;
    "grow" looks at pictures that were added.
    DELETE /api/v1/job cancels; nothing is lost."""

    kind: Literal["prepare", "round", "export", "start", "train", "grow"]
    n_questions: Annotated[int, Field(ge=1, le=10_000)] | None = None


class Folders(Answer):
    """GET /api/v1/folders: the pictures sorted into one folder per class, beside the originals."""

    state: Literal["idle", "running", "done", "failed"]
    done: int = 0
    total: int = 0
    where: str
    """The folder, on the machine that serves the page."""
    is_there: bool
    """Whether pictures were ever sorted into it."""
    sentence: str = ""
    """What was done, once it is."""
    error: str | None = None


class SortIntoFolders(Request):
    """POST /api/v1/folders: copy or link the pictures into a folder per class; again to bring it up to date."""

    uid: Uid
    how: Literal["copy", "link", "symlink"] = "copy"
    only_checked: bool = False
    """Only pictures of which a person said or accepted what they are."""


class ChooseClasses(Request):
    """POST /api/v1/n-classes: overrule the number of classes to look for; only before the first training."""

    n: Annotated[int, Field(ge=2, le=100_000)]


class StartAudit(Request):
    """POST /api/v1/audit: draw a random sample to be answered blind."""

    uid: Uid
    n: Annotated[int, Field(ge=5, le=1000)] = 30


class Release(Request):
    """POST /api/v1/audit/release: let training learn from what was answered blind."""

    uid: Uid
    who: Who
