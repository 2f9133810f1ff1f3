"""What travels between the review page and the server."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agcd.app.web.schemas import (
    MAX_ROWS,
    Answer,
    ClassId,
    Name,
    NewClass,
    Request,
    Row,
    State,
    Thumb,
    Uid,
    Who,
    check_each_once,
)

Mode = Literal["single", "class"]
"""One picture after the other, or a page of one class."""


class Suggestion(Answer):
    """A class that a picture may be instead."""

    class_id: str
    name: str
    is_new: bool


class ReviewPicture(Thumb):
    """A picture that nobody has looked at, and what it is called."""

    class_id: str
    """The class it is shown as: what is sent back when it is right."""
    p_right: float
    """The chance that its name is right."""
    others: list[Suggestion]
    """At most five, the likeliest first."""


class ReviewClass(Answer):
    """A class with pictures that nobody has looked at."""

    key: str
    class_id: str
    name: str
    n_left: int
    expected_wrong: float


class ReviewLeft(Answer):
    """How far the review is."""

    n_total: int
    """Pictures but those whose label was known from the start and those for testing."""
    n_checked: int
    n_left: int
    """Pictures with a name that nobody has looked at, nor accepted."""
    n_unseen: int
    """Pictures that were accepted without a look, and how many of them are likely to have a wrong name."""
    unseen_wrong: float
    n_unnamed: int
    """Pictures without a name: they have to be labelled."""
    expected_wrong: float
    """How many of those left are likely to have a wrong name."""
    is_checked: bool
    """Whether enough answers have checked that number; before, it is a guess that nobody should act on."""


class Review(Answer):
    """GET /api/v1/review?mode=single|class&key=&n=&except=: the pictures to look at next, the least certain first."""

    mode: Mode
    left: ReviewLeft
    pictures: list[ReviewPicture]
    page_wrong: float
    """How many wrong names looking at these pictures is likely to mend."""
    shown: ReviewClass | None
    """The class of the page; None where pictures are shown one by one, or none is left."""
    classes: list[ReviewClass]
    """The classes still to do, the one with most wrong names to be expected first; only with pages of one class."""


class ShownAs(Request):
    """A picture and the class it was shown as: what a person saw is what is stored."""

    row: Row
    class_id: ClassId


class Change(Request):
    """A picture that is something else: a class by id or by name (a new name makes a class)."""

    row: Row
    class_id: ClassId | None = None
    name: Name | None = None


class Confirm(Request):
    """POST /api/v1/review/confirm: what a person says of the pictures that were shown; undone together.

    What is right is a label where it was looked at alone (``single``), and accepted by page where it was looked over
    with others (``class``). Changes are labels in both.
    """

    uid: Uid
    who: Who
    mode: Mode
    right: list[ShownAs] = Field(default_factory=list, max_length=MAX_ROWS)
    changes: list[Change] = Field(default_factory=list, max_length=MAX_ROWS)
    junk: list[Row] = Field(default_factory=list, max_length=MAX_ROWS)

    @model_validator(mode="after")
    def _each_row_once(self) -> Self:
        check_each_once([one.row for one in self.right] + [one.row for one in self.changes] + self.junk)
        return self


class Confirmed(Answer):
    """What became of it."""

    stored: dict[str, int]
    """How many of each kind: label, accept, junk."""
    n_known: int
    new_classes: list[NewClass]
    is_repeat: bool
    left: ReviewLeft
    state: State


class AcceptRest(Request):
    """POST /api/v1/review/accept: every picture that is left counts as what it is called now; undone together.

    At most 20,000 at once, the surest first.
    """

    uid: Uid
    who: Who
    n: Annotated[int, Field(ge=1)]
    """How many the person agreed to: where more are left by now, nothing is accepted."""


class RestAccepted(Answer):
    n_accepted: int
    expected_wrong: float
    """How many of these are likely to have a wrong name."""
    is_repeat: bool
    left: ReviewLeft
    state: State
