"""What travels between the page and the server: every request and answer of the REST API.

A *key* names a card of the class board: ``c-<class id>`` is a class that people named, ``s-<slot>`` a group that the
last model found and nobody has named. Rows are numbers; the picture of row 7 is ``/image/7?size=160&v=<its v>``.
Every request that changes something carries a ``uid`` made by the client, so that sending it twice counts once.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Uid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$", description="Made by the client; repeated = counts once.")]
Who = Annotated[str, Field(min_length=1, max_length=60, description="The person who says it.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ClassId = Annotated[str, Field(pattern=r"^[a-f0-9]{32}$")]
Key = Annotated[str, Field(pattern=r"^(c-[a-f0-9]{32}|s-[0-9]{1,6})$")]
Row = Annotated[int, Field(ge=0)]
MAX_ROWS = 20_000
"""Rows in one request."""


class Request(BaseModel):
    """A request body: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """An answer of the server."""

    model_config = ConfigDict(from_attributes=True)


class Thumb(Answer):
    """One picture: where it stands and who says so."""

    row: int
    v: str
    """Changes with the content, so that browsers may keep the picture."""
    name: str | None = None
    """The class it counts as now: a person's, one accepted by page, or the model's."""
    by: Literal["human", "page", "model"] | None = None
    probability: float | None = None
    """The model's highest probability for it."""


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
    """GET /api/state: where the project stands. Cheap; the page asks for it after every answer."""

    name: str
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


class Candidate(Answer):
    """One class that the model holds possible for a picture."""

    key: str
    class_id: str | None
    slot: int | None
    name: str
    """Its name, or "unnamed #17"."""
    is_named: bool
    is_new: bool
    size: int
    probability: float
    exemplars: list[Thumb]
    """At most six; those labelled by people first."""


class Card(Answer):
    """GET /api/question: one question, leased to this browser. ``row`` is None when nothing is left to ask."""

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


class Said(Request):
    """What is said about one row: a class by id or by name (a new name makes a class), or why there is none."""

    row: Row
    kind: Literal["label", "skip", "unsure", "junk"]
    class_id: ClassId | None = None
    name: Name | None = None


class Answers(Request):
    """POST /api/answers: one answer, or many that are stored and undone together."""

    uid: Uid
    who: Who
    answers: Annotated[list[Said], Field(min_length=1, max_length=MAX_ROWS)]
    is_audit: bool = False
    """Answers of a blind audit are not trained on."""


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
    """POST /api/undo: take back the last thing that this person did and that still stands."""

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
    """GET /api/names: everything that can be searched for by typing."""

    class_id: str
    name: str
    aliases: list[str]
    is_new: bool
    is_retired: bool
    n_labels: int
    size: int
    exemplar: Thumb | None


class BoardCard(Answer):
    """One class, or one group that nobody has named."""

    key: str
    class_id: str | None
    slot: int | None
    """None for a class that the last model does not know yet."""
    name: str
    is_named: bool
    is_new: bool
    is_retired: bool
    size: int
    n_labels: int
    n_accepted: int
    purity: float | None
    """Share of the people's labels among its members that carry its name; None without labels."""
    stability: float | None
    """Share of its members that were already together in the round before."""
    conflicts: list[str]
    """Sentences: two names in one group, one name in two groups."""
    typical: list[Thumb]
    border: list[Thumb]


class Board(Answer):
    """GET /api/board?page=&sort=size|name|purity|conflicts|new&text=: a page of cards."""

    cards: list[BoardCard]
    n_cards: int
    page: int
    n_pages: int
    round: int | None


class Rename(Request):
    """POST /api/classes/rename"""

    uid: Uid
    who: Who
    class_id: ClassId
    name: Name


class Merge(Request):
    """POST /api/classes/merge: everything said of ``class_id`` counts for ``into`` from now on."""

    uid: Uid
    who: Who
    class_id: ClassId
    into: ClassId


class Retire(Request):
    """POST /api/classes/retire: the class takes no more labels."""

    uid: Uid
    who: Who
    class_id: ClassId


class Changed(Answer):
    """What became of a change of classes."""

    what: str
    is_repeat: bool
    state: State


class MergePreview(Answer):
    """GET /api/classes/merge-preview?one=KEY&into=KEY: both side by side. Either may be an unnamed group, but not both:
    then the page labels typical members instead (POST /api/answers)."""

    one: BoardCard
    into: BoardCard
    labelled_one: list[Thumb]
    labelled_into: list[Thumb]
    what: str
    """In words: "12 labels of 'pear' will count as 'apple'"."""


class Half(Answer):
    size: int
    typical: list[Thumb]
    labelled: list[Thumb]
    """Rows of this half that people labelled with the class's name: a split gives them the half's new name."""


class SplitPreview(Answer):
    """GET /api/classes/split-preview?key=KEY: the two halves that 2-means finds. The split itself is one
    POST /api/answers that labels the ticked pictures of both halves."""

    card: BoardCard
    halves: list[Half]


class Members(Answer):
    """GET /api/members?key=KEY&order=typical|border|labelled&page=: more members of one card."""

    thumbs: list[Thumb]
    n: int
    page: int
    n_pages: int


class ToQueue(Request):
    """POST /api/queue: ask about the border cases of a card, or about given rows."""

    uid: Uid
    who: Who
    key: Key | None = None
    rows: Annotated[list[Row], Field(max_length=200)] = []
    n: Annotated[int, Field(ge=1, le=50)] = 5


class Queued(Answer):
    n_added: int
    state: State


class Grow(Answer):
    """GET /api/grow?key=KEY&order=UID&page=: unlabelled pictures by falling similarity to the class, page by page."""

    card: BoardCard
    thumbs: list[Thumb]
    page: int
    n_pages: int
    page_size: int
    similarity: tuple[float, float] | None
    """Highest and lowest on this page."""


class Accept(Request):
    """POST /api/accept: all pictures of the pages 0 … ``last_page`` of /api/grow, less ``except_rows``, belong to the
    class. Kept apart from labels: not trained on as truth, never counted as gold."""

    uid: Uid
    who: Who
    key: Key
    class_id: ClassId | None = None
    """The class; may be left out where ``key`` is one."""
    name: Name | None = None
    """Or a name: a new one makes a class."""
    last_page: Annotated[int, Field(ge=0, le=1000)]
    order: Uid
    """The name under which /api/grow fixed the order: what is accepted is what was seen, whatever happened since."""
    except_rows: Annotated[list[Row], Field(max_length=MAX_ROWS)] = []


class Accepted(Answer):
    n_accepted: int
    is_repeat: bool
    state: State


class Grid(Answer):
    """GET /api/grid?show=&key=&selection=&order=&page=: pictures to mark and label together.

    ``show``: all, unlabelled, labelled, accepted, junk, passed, disagree (people and model), selection.
    ``order``: row, uncertain, confident, class.
    """

    thumbs: list[Thumb]
    n: int
    page: int
    n_pages: int
    title: str


class Selection(Request):
    """POST /api/selections: rows chosen on the map; the grid shows them by the id that comes back."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS)]


class SelectionId(Answer):
    id: str
    n: int


class MapPoints(Answer):
    """GET /api/map?round=: at most 20,000 pictures as points, all lists in the same order."""

    round: int
    rounds: list[int]
    row: list[int]
    v: list[str]
    x: list[float]
    y: list[float]
    name: list[int]
    """Index into ``names``."""
    names: list[str]
    is_new: list[bool]
    """By index of ``names``."""
    by: list[Literal["human", "page", "model"]]
    margin: list[float]
    """Gap between the two highest probabilities: small is uncertain."""
    disagrees: list[bool]
    """People and model name different classes."""
    n_rows: int
    """Pictures in all; where it is more than the points, a fair sample is shown."""


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
    """GET /api/rounds"""

    rounds: list[RoundCard]
    forecast: Forecast
    n_audit_open: int


class Job(Answer):
    """GET /api/job: the work that runs in the background; the page asks every second."""

    state: Literal["idle", "running", "done", "failed", "cancelled"]
    kind: Literal["prepare", "round", "export"] | None = None
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
    """POST /api/job: "prepare" reads the images and estimates the number of classes; "round" trains on all answers and
    chooses the next questions; "export" writes the classifier files. DELETE /api/job cancels; nothing is lost."""

    kind: Literal["prepare", "round", "export"]
    n_questions: Annotated[int, Field(ge=1, le=10_000)] | None = None


class ChooseClasses(Request):
    """POST /api/n-classes: overrule the number of classes to look for; only before the first training."""

    n: Annotated[int, Field(ge=2, le=100_000)]


class StartAudit(Request):
    """POST /api/audit: draw a random sample to be answered blind."""

    uid: Uid
    n: Annotated[int, Field(ge=5, le=1000)] = 30
