"""What the answers say now: ``LiveView``, beliefs over the neighbour graph of the last view, and the next question.

``LiveLog`` follows what people say, answer by answer, undo by undo: it changes only what changed, and comes to the same
as starting anew (tests/app/test_live.py). It needs no torch, so it lives in the process that serves the page.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agcd.accuracy import CHOSEN, DRAWN, GIVEN, POOL, TAKEN, AccuracyEstimate
from agcd.app.labels import NOWHERE, How, LabelView, Picked
from agcd.app.rounds import LiveRows, RoundView
from agcd.app.store.classes import NO_CLASS
from agcd.asking import Asking, Moment
from agcd.beliefs import Belief
from agcd.signs import Judgement, judge
from agcd.types import BoolArray, IntArray

N_SUGGESTED = 5
"""Classes that a card suggests."""
UNCLAIMED_SHARE = 0.5
"""A cluster is shown as a group without a name when the labels explain less than this share of its rows."""
FEWEST_ANSWERS = 20
"""Answers after which the accuracy is told; and at least one for every other class."""
BOUGHT_ANSWERS = 10
"""Answers of which it is told what they changed."""
LEAST_KEPT = 0.3
_KEPT_VIEWS = 3
_KINDS = {Picked.NOT: TAKEN, Picked.CHOSEN: CHOSEN, Picked.DRAWN: DRAWN}


@dataclass(frozen=True, eq=False)
class LiveView:
    """What the labels of one moment say about the live rows of a round; arrays are by place in ``LiveRows.rows``."""

    rows: LiveRows
    moment: Moment = field(repr=False)
    is_unclaimed: BoolArray
    """(m,): rows without a label of clusters that the labels do not explain: likely of a class nobody has named."""
    labels: LabelView = field(repr=False)
    _round: RoundView = field(repr=False)

    @property
    def y_class(self) -> IntArray:
        """(m,): the labels themselves, as places of classes; −1 is none."""
        return self.moment.y_class

    @property
    def belief(self) -> Belief:
        """Its ``y_class`` are places of classes."""
        return self.moment.belief

    @cached_property
    def judgement(self) -> Judgement:
        """How likely the beliefs are right, by the answers so far."""
        held, held_class = _held(self.labels, self.rows)
        return judge(self.moment, self.y_class, _kinds(self.labels, self.rows), held, held_class)

    def suggested(self, rows: IntArray) -> list[list[tuple[int, float]]]:
        """For each of ``rows`` the classes for which most evidence speaks, as places, each with its share of all
        evidence, that for a class nobody has named included."""
        beliefs, place = self.moment.beliefs, self.rows.stand_in[rows]
        shares = beliefs.shares(len(beliefs.n_labels), np.maximum(place, 0))
        shares[:, beliefs.n_labels == 0] = 0
        shares[place < 0] = 0
        shares *= 1 - self.belief.unnamed[np.maximum(place, 0), None]
        best = np.argsort(-shares, axis=1, kind="stable")[:, :N_SUGGESTED]
        return [[(int(c), float(own[c])) for c in order if own[c] > 0] for own, order in zip(shares, best, strict=True)]

    @property
    def n_checks(self) -> int:
        """Answers by which the beliefs are judged: those to questions, and blind ones."""
        return int(np.isin(self.judgement.checked.kind, (CHOSEN, DRAWN)).sum())

    @property
    def n_checks_needed(self) -> int:
        """How many of them it takes until the accuracy is told."""
        return max(FEWEST_ANSWERS, len(self.labels.carried) // 2)

    @cached_property
    def accuracy(self) -> AccuracyEstimate | None:
        """The share of train rows that carry the right name, those that people named included; None while too few
        answers have checked it."""
        if self.n_checks < self.n_checks_needed:
            return None
        judged, rows = self.judgement, self.rows.rows[self.judgement.pool_rows]
        is_unseen = np.isin(rows, self.labels.unseen)
        is_left = ~self.labels.settled[rows] | is_unseen
        is_named = is_unseen | (is_left & ~self.is_unclaimed[judged.pool_rows])
        rest = judged.shift.accuracy(judged.pool_logits[is_named])
        said = self.n_said / max(1, self.n_pictures)
        named = (1 - said) * is_named.sum() / max(1, is_left.sum())  # what has no name is not right
        return AccuracyEstimate(*(float(said + named * value) for value in (rest.mean, rest.low, rest.high)))

    @property
    def n_pictures(self) -> int:
        """Train rows that had no label at the start and can be read, without junk and what was removed."""
        return len(self._round.order) - int(self._round.is_train[self.labels.rows((How.GIVEN, *NOWHERE))].sum())

    @property
    def n_said(self) -> int:
        """How many of them people have named or accepted since, but for those that nobody looked at."""
        n_said = self.labels.n(How.ANSWERED, How.HELD, How.ACCEPTED) - len(self.labels.unseen)
        return min(self.n_pictures, n_said)


@dataclass(frozen=True)
class Bought:
    """What some answers changed: pictures that are called otherwise than before them."""

    n_answers: int
    n_changed: int
    n_expected: int | None
    """What had been expected of them; None where nothing was."""
    n_next: int
    """What is expected of as many more."""


@dataclass(frozen=True)
class _Past:
    """What rows were called after so many labels, and how many the next answers were expected to change."""

    n_labels: int
    names: IntArray
    n_next: int | None


class LiveLog:
    """Follows the labels of one project over the rows of its last view. Several threads may ask it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._past: deque[_Past] = deque(maxlen=2 * BOUGHT_ANSWERS + 1)
        self._asking: Asking | None = None
        self._key, self._last_event = "", 0
        """Of the rows that are followed, and of the labels."""
        self._views: OrderedDict[int, LiveView] = OrderedDict()
        """Of these rows, by last event."""

    def view(self, labels: LabelView, seen: RoundView) -> LiveView | None:
        """What the labels say over the rows of a view; None where that has no neighbours."""
        if seen.live is None:
            return None
        with self._lock:
            if self._key == seen.live.key and labels.last_event in self._views:
                return self._views[labels.last_event]
            moment = self._moment(labels, seen.live)
            view = LiveView(seen.live, moment, _unclaimed(seen.live, moment), labels, seen)
            self._views[labels.last_event] = view
            while len(self._views) > _KEPT_VIEWS:
                self._views.popitem(last=False)
            return view

    def bought(self, view: LiveView) -> Bought | None:
        """What the last answers changed, and what as many more are likely to; None while there are too few."""
        with self._lock:
            now = int((view.y_class >= 0).sum())
            past = {entry.n_labels: entry for entry in self._past}
            then, before = past.get(now - BOUGHT_ANSWERS), past.get(now - 2 * BOUGHT_ANSWERS)
            if then is None or now not in past:
                return None
            n_changed = _n_changed(then.names, past[now].names)
            # Answers buy less and less: as much less as they did before, where that is known.
            n_before = _n_changed(before.names, then.names) if before else n_changed
            n_next = round(n_changed * min(1.0, max(LEAST_KEPT, n_changed / max(1, n_before))))
            self._past[list(past).index(now)] = replace(past[now], n_next=n_next)
            return Bought(BOUGHT_ANSWERS, n_changed, then.n_next, n_next)

    def _remember(self, now: Moment) -> None:
        n_labels = int((now.y_class >= 0).sum())
        while self._past and self._past[-1].n_labels >= n_labels:  # taken back, or said otherwise
            self._past.pop()
        self._past.append(_Past(n_labels, np.where(now.y_class >= 0, NO_CLASS, now.belief.y_class), None))

    def question(
        self, labels: LabelView, seen: RoundView, asked: IntArray, number: int
    ) -> tuple[int, bool, float] | None:
        """The row of question ``number``, whether it was drawn at random, and how much uncertainty it covers; None when
        nothing is left to ask. ``asked`` are rows that others are asked about."""
        assert seen.live is not None
        with self._lock:
            asking = self._following(labels, seen.live)
            asking.follow(asking.y_class, _closed(labels, seen.live, asked))
            if not asking.may_ask.any():
                return None
            place, is_drawn = asking.question(number)
            return int(seen.live.rows[place]), is_drawn, float(asking.gain(place))

    def _moment(self, labels: LabelView, live: LiveRows) -> Moment:
        """What ``labels`` say."""
        if self._key == live.key and self._asking is not None and labels.last_event < self._last_event:
            # Somebody else has answered meanwhile, and that is followed already: look back beside it.
            return self._asking.moment().after(live_labels(labels, live))
        moment = self._following(labels, live).moment()
        self._remember(moment)
        return moment

    def _following(self, labels: LabelView, live: LiveRows) -> Asking:
        """The asking among live rows after all ``labels``."""
        if self._asking is not None and (self._key, self._last_event) == (live.key, labels.last_event):
            return self._asking
        y_class = live_labels(labels, live)
        if self._asking is None or self._key != live.key:
            self._asking, self._key = Asking(live.neighbours, y_class), live.key
            self._views.clear()
            self._past.clear()
        elif not np.array_equal(self._asking.y_class, y_class):
            self._asking.follow(y_class, self._asking.asked)
        self._last_event = labels.last_event
        return self._asking


def _n_changed(then: IntArray, now: IntArray) -> int:
    """Rows without a label that are called otherwise now."""
    return int(((now != then) & (now != NO_CLASS)).sum())


def live_labels(labels: LabelView, live: LiveRows) -> IntArray:
    """(m,): the labels that training learns, as places of classes; of a large pool one may stand for another row."""
    rows, places = labels.learned()
    place = live.stand_in[rows]
    known = place >= 0
    rows, places, place = rows[known], places[known], place[known]
    y_class = np.full(len(live.rows), NO_CLASS, np.int64)
    is_own = live.rows[place] == rows
    y_class[place[~is_own]] = places[~is_own]
    y_class[place[is_own]] = places[is_own]
    return y_class


def _own_places(live: LiveRows, rows: IntArray) -> tuple[IntArray, BoolArray]:
    """The places of those of ``rows`` that are live ones, and which are."""
    place = live.stand_in[rows]
    is_own = (place >= 0) & (live.rows[place] == rows)
    return place[is_own], is_own


def _closed(labels: LabelView, live: LiveRows, asked: IntArray) -> IntArray:
    """Places of rows that have no label and are not to be asked about."""
    others = labels.rows((How.HELD, How.ACCEPTED, How.SKIPPED, How.UNSURE, *NOWHERE))
    return np.unique(_own_places(live, np.concatenate([others, asked]))[0])


def _kinds(labels: LabelView, live: LiveRows) -> IntArray:
    """(m,): how each live row came to its label, as ``agcd.accuracy`` counts."""
    rows, asked = labels.how_asked()
    kind: NDArray[np.int64] = np.full(len(live.rows), POOL, np.int64)
    place, is_own = _own_places(live, rows)
    lookup = np.array([_KINDS.get(how, TAKEN) for how in Picked], np.int64)
    kind[place] = lookup[asked[is_own]]
    given, _ = _own_places(live, labels.rows((How.GIVEN,)))
    kind[given] = GIVEN
    return kind


def _held(labels: LabelView, live: LiveRows) -> tuple[IntArray, IntArray]:
    """Places of rows that were answered in a blind audit, and what they are."""
    rows = labels.rows((How.HELD,))
    place, is_own = _own_places(live, rows)
    return place, labels.classes_of(rows)[is_own]


def _unclaimed(live: LiveRows, now: Moment) -> BoolArray:
    """Rows of clusters in which, for most, more speaks for a class nobody has named than for any other."""
    free = now.y_class < 0
    n = np.bincount(live.cluster[free], minlength=live.n_clusters)
    n_unclaimed = np.bincount(live.cluster[free & (now.belief.margin <= 0)], minlength=live.n_clusters)
    return free & (n_unclaimed > UNCLAIMED_SHARE * n)[live.cluster]
