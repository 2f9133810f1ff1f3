"""What travels between the server and the pages that show many pictures: classes, grid and map."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agcd.app.web.schemas import (
    MAX_ROWS,
    Answer,
    ClassId,
    ClassName,
    Key,
    Name,
    Request,
    Row,
    ShownGroup,
    State,
    Thumb,
    Uid,
    Who,
)


class BoardCard(ShownGroup):
    """One class, or one group that nobody has named, on the board."""

    is_retired: bool
    n_labels: int
    n_accepted: int
    n_agree: int
    """Of the labels that people gave to its members, how many carry its name, and how many there are."""
    n_said: int
    stability: float | None
    """Share of its members that were already together in the round before."""
    conflicts: list[str]
    """Sentences: two names in one group, one name in two groups."""
    typical: list[Thumb]
    border: list[Thumb]


class Board(Answer):
    """GET /api/v1/board?page=&sort=size|name|agreement|conflicts|new&text=&view=auto|cards|lines: a page of cards, or
    of lines, which are more to a page and have fewer pictures."""

    cards: list[BoardCard]
    n_cards: int
    page: int
    n_pages: int
    round: int | None
    view: Literal["cards", "lines"]


class Alike(Answer):
    """GET /api/v1/classes/alike: two classes, or a class and a group, whose pictures look alike; ``one`` would be
    merged into the other."""

    one: BoardCard
    into: BoardCard


class Rename(Request):
    """POST /api/v1/classes/rename"""

    uid: Uid
    who: Who
    class_id: ClassId
    name: Name


class Merge(Request):
    """POST /api/v1/classes/merge: everything said of ``class_id`` counts for ``into`` from now on."""

    uid: Uid
    who: Who
    class_id: ClassId
    into: ClassId


class Retire(Request):
    """POST /api/v1/classes/retire: the class takes no more labels."""

    uid: Uid
    who: Who
    class_id: ClassId


class Changed(Answer):
    """What became of a change of classes."""

    what: str
    is_repeat: bool
    state: State


class MergePreview(Answer):
    """GET /api/v1/classes/merge-preview?one=KEY&into=KEY: both side by side. Either may be an unnamed group, but not
    both: then the page labels typical members instead (POST /api/v1/answers)."""

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
    """GET /api/v1/classes/split-preview?key=KEY: the two halves that 2-means finds. The split itself is one
    POST /api/v1/answers that labels the ticked pictures of both halves."""

    card: BoardCard
    halves: list[Half]


class Members(Answer):
    """GET /api/v1/members?key=KEY&order=typical|border|labelled&page=: more members of one card."""

    thumbs: list[Thumb]
    n: int
    page: int
    n_pages: int


class ToQueue(Request):
    """POST /api/v1/queue: ask about the border cases of a card, or about given rows."""

    uid: Uid
    who: Who
    key: Key | None = None
    rows: list[Row] = Field([], max_length=200)
    n: Annotated[int, Field(ge=1, le=50)] = 5


class Queued(Answer):
    n_added: int
    state: State


class Grow(Answer):
    """GET /api/v1/grow?key=KEY&order=UID&page=&per_page=: pictures without an answer by falling similarity to the
    class, page by page. The first page says how long pages of this class are; it is sent back for the others."""

    card: BoardCard
    thumbs: list[Thumb]
    n: int
    """On all pages."""
    page: int
    n_pages: int
    page_size: int
    similarity: tuple[float, float] | None
    """Highest and lowest on this page."""


class Accept(Request):
    """POST /api/v1/accept: all pictures of /api/v1/grow up to ``last_row``, less ``except_rows``, belong to the class.
    Kept apart from labels: not trained on as truth, never counted as gold."""

    uid: Uid
    who: Who
    key: Key
    class_id: ClassId | None = None
    """The class; may be left out where ``key`` is one."""
    name: Name | None = None
    """Or a name: a new one makes a class."""
    last_row: Row
    """The cut: the last picture that is right."""
    order: Uid
    """The name under which /api/v1/grow fixed the order: what is accepted is what was seen, whatever happened since."""
    except_rows: list[Row] = Field([], max_length=MAX_ROWS)


class Accepted(Answer):
    n_accepted: int
    is_repeat: bool
    state: State


class Grid(Answer):
    """GET /api/v1/grid?show=&key=&selection=&text=&folder=&who=&round=&sure=&order=&page=: pictures to mark and label
    together.

    ``show``: all, unlabelled, labelled, accepted, junk, passed, disagree (people and model), selection. ``text`` is
    searched in the paths, ``folder`` is one of /api/v1/grid/choices; ``who`` answered for ``round``; ``sure`` is sure
    or unsure.
    ``order``: row, uncertain, confident, class.
    """

    thumbs: list[Thumb]
    n: int
    page: int
    n_pages: int
    title: str


class Look(Answer):
    """GET /api/v1/rows/{row}: one picture, and what it may be called, the likeliest first."""

    thumb: Thumb
    likely: list[ClassName]


class Choice(Answer):
    """One value of a filter, and what to call it."""

    value: str
    word: str


class GridChoices(Answer):
    """GET /api/v1/grid/choices: what the grid can be narrowed to."""

    folders: list[Choice]
    classes: list[Choice]
    people: list[Choice]
    rounds: list[Choice]


class Selection(Request):
    """POST /api/v1/selections: rows chosen on the map; the grid shows them by the id that comes back."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS)]


class SelectionId(Answer):
    id: str
    n: int


class MapPoints(Answer):
    """GET /api/v1/map?round=: at most 20,000 pictures as points, all lists in the same order."""

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
    by: list[Literal["human", "page", "answers", "model"]]
    margin: list[float]
    """Gap between the two highest probabilities: small is uncertain."""
    disagrees: list[bool]
    """People and model name different classes."""
    n_rows: int
    """Pictures in all; where it is more than the points, a fair sample is shown."""
