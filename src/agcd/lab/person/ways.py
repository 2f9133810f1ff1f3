"""Ways of labelling a collection: each shows rows to the person and yields, after every action, what rows are called.

A way sees a ``Pool``, which holds no truth: what it knows, the person told it. −1 is a row without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from agcd.asking import Asking, Neighbours
from agcd.errors import ConfigError, did_you_mean
from agcd.lab.person.page import at_the_page
from agcd.lab.person.pool import Pool
from agcd.lab.person.rounds import N_TICKS, by_rounds
from agcd.lab.person.simulated import Person
from agcd.rng import derive_seed, generator
from agcd.types import FloatArray, IntArray

N_SUGGESTED = 5
"""Classes that the card suggests, each with a digit."""
N_SHEET = 12
"""Typical pictures of a cluster from which it gets its name."""
N_PAGE = 40
"""Pictures of a page that is approved or split."""
N_SINGLE = 4
"""A page of no more than so many pictures is labelled one by one: splitting it would take longer."""


@dataclass(frozen=True)
class Place:
    """Where a way may leave files, and the settings of a project."""

    folder: Path
    settings: tuple[str, ...] = ()
    """As ``agcd init --set`` takes them."""


Names = Generator[IntArray, None, None]
"""What every row of the pool is called, (n,), after each action."""


@dataclass(frozen=True)
class Way:
    """A way of labelling, and what a table and a legend call it."""

    words: str
    run: Callable[[Pool, Person, Place], Names]
    needs_items: bool = False
    """Whether there must be pictures or texts to show, not embeddings alone."""


# ------------------------------------------------------------------------------------------------------ ours, live


def live(pool: Pool, person: Person, place: Place, *, ticks_below: int) -> Names:
    """One question at a time, each decided after all answers so far; unlabelled rows are called what the labels say.

    ``ticks_below``: after an answer whose class had fewer labels than this, the person ticks the nearest rows that are
    also it. 0 is never, 1 only after a new name.
    """
    y_class = pool.y_start.copy()
    n_asked = 0
    with person.waiting():
        asking = Asking(live_neighbours(pool.x), y_class)
        names = _believed(asking, y_class)
    yield names
    while asking.may_ask.any():
        with person.waiting():
            row, _ = asking.question(n_asked)
            n_asked += 1
            suggested = _suggested(asking, row)
        said = person.name_on_card(row, suggested)
        rows = [row]
        if (y_class == said).sum() < ticks_below:
            rows += person.tick(_nearest_open(pool.x, y_class, row), said)
        with person.waiting():
            for other in rows:
                y_class[other] = said
                asking.tell(other, said)
            names = _believed(asking, y_class)
        yield names


def live_neighbours(x: FloatArray) -> Neighbours:
    """Neighbours as the page keeps them: of features in half precision."""
    return Neighbours.of(x.astype(np.float16))


def _believed(asking: Asking, y_class: IntArray) -> IntArray:
    return np.where(y_class >= 0, y_class, asking.beliefs.at().y_class)


def _suggested(asking: Asking, row: int) -> list[int]:
    """The classes for which most evidence speaks at a row."""
    shares = asking.beliefs.shares(len(asking.beliefs.n_labels), np.array([row]))[0]
    shares[asking.beliefs.n_labels == 0] = 0
    best = np.argsort(-shares, kind="stable")[:N_SUGGESTED]
    return [int(c) for c in best if shares[c] > 0]


def _nearest_open(x: FloatArray, y_class: IntArray, row: int) -> list[int]:
    """The rows without a label that are most like ``row``."""
    rows = np.flatnonzero(y_class < 0)
    rows = rows[rows != row]
    return [int(r) for r in rows[np.argsort(-(x[rows] @ x[row]), kind="stable")[:N_TICKS]]]


def rounds(pool: Pool, person: Person, place: Place) -> Names:
    """Explicit rounds: questions, then training, then questions again, over HTTP."""
    return by_rounds(pool, person, place.folder, place.settings)


def page(pool: Pool, person: Person, place: Place) -> Names:
    """What the page does: live questions while it trains in the background, then the review to its end, over HTTP."""
    return at_the_page(pool, person, place.folder, place.settings)


# ----------------------------------------------------------------------------------------------- the others' ways


def one_by_one(pool: Pool, person: Person, place: Place) -> Names:
    """Every row by itself, in random order: a plain labelling tool."""
    y_class = pool.y_start.copy()
    for row in generator(pool.seed, "person", "order").permutation(np.flatnonzero(y_class < 0)).tolist():
        y_class[row] = person.name_in_tool(row)
        yield y_class.copy()


def name_clusters(pool: Pool, person: Person, place: Place, *, per_class: int) -> Names:
    """k-means with ``per_class`` clusters for each class there truly is; each gets one name, the largest first."""
    y_class = pool.y_start.copy()
    with person.waiting():
        clusters = _clusters(pool, per_class * pool.n_classes)
    for rows in clusters:
        y_class[rows] = person.name_sheet(rows[:N_SHEET].tolist())
        yield y_class.copy()


def approve_pages(pool: Pool, person: Person, place: Place, *, per_class: int) -> Names:
    """k-means clusters in pages: one of a single class gets its name at once, any other is split in two.

    Of 1, 2, 4 and 6 clusters for each class there truly is, 4 came out best on flowers102, 4 and 6 on grocery81.
    """
    y_class = pool.y_start.copy()
    with person.waiting():
        clusters = _clusters(pool, per_class * pool.n_classes)
    pages = [rows[i : i + N_PAGE] for rows in clusters for i in range(0, len(rows), N_PAGE)][::-1]
    while pages:
        page = pages.pop()
        said = person.name_page(page.tolist()) if len(page) > N_SINGLE else None
        if said is not None:
            y_class[page] = said
            yield y_class.copy()
            continue
        with person.waiting():
            halves = _k_means(pool, page, 2) if len(page) > N_SINGLE else []
        if len(halves) == 2:
            pages += halves[::-1]
            yield y_class.copy()
            continue
        for row in page.tolist():
            y_class[row] = person.name_in_tool(row)
            yield y_class.copy()


def _clusters(pool: Pool, n: int) -> list[IntArray]:
    return _k_means(pool, np.flatnonzero(pool.y_start < 0), n)


def _k_means(pool: Pool, rows: IntArray, n: int) -> list[IntArray]:
    """Clusters of ``rows``, the largest first, each with its most typical rows first."""
    n_distinct = len(np.unique(pool.x[rows], axis=0))
    seed = derive_seed(pool.seed, "person", "k-means") % (1 << 32)
    found = KMeans(min(n, n_distinct), n_init=4, random_state=seed).fit(pool.x[rows])
    distance = found.transform(pool.x[rows]).min(1)
    clusters = [np.flatnonzero(found.labels_ == c) for c in range(found.n_clusters)]
    ordered = [rows[own[np.argsort(distance[own], kind="stable")]] for own in clusters if len(own)]
    return sorted(ordered, key=len, reverse=True)


WAYS: dict[str, Way] = {
    "live": Way("ours, live", partial(live, ticks_below=0)),
    "live-ticks": Way("ours, live, with ticks", partial(live, ticks_below=1)),
    "page": Way("ours, the page: live, then the review", page, needs_items=True),
    "rounds": Way("ours in explicit rounds", rounds, needs_items=True),
    "clusters": Way("naming k-means clusters, K known", partial(name_clusters, per_class=1)),
    "clusters-2x": Way("naming k-means clusters, 2 × K", partial(name_clusters, per_class=2)),
    "pages": Way("approving or splitting pages", partial(approve_pages, per_class=4)),
    "one-by-one": Way("labelling one by one", one_by_one),
}
"""Ours first; tables and pictures keep the order."""


def check_ways(names: Sequence[str]) -> None:
    """Refuse a way that there is not."""
    for name in names:
        if name not in WAYS:
            raise ConfigError(f"Unknown way {name!r}.{did_you_mean(name, WAYS)}")
