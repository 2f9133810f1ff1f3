"""Every way of labelling passes one contract, and sees the truth only through the person."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from agcd.config import BackboneConfig
from agcd.errors import ConfigError
from agcd.lab.datasets import load_data
from agcd.lab.person.costs import Costs
from agcd.lab.person.curves import Curve, record
from agcd.lab.person.pool import Drawn, Start, draw_pool
from agcd.lab.person.run_person import make_person
from agcd.lab.person.simulated import Person
from agcd.lab.person.ways import WAYS, Place, check_ways
from agcd.rng import generator
from agcd.types import IntArray

START = Start(n_classes=6, n_known=2, n_labels=3)
WITHOUT_PICTURES = [name for name, way in WAYS.items() if not way.needs_items]


@cache
def blobs() -> Drawn:
    """Six of the toy blobs, less apart than they are, so that no way is right at once."""
    dataset = load_data("toy", Path())
    assert dataset.x is not None
    dataset = replace(dataset, x=dataset.x + generator(0, "noise").normal(size=dataset.x.shape) * 1.5)
    return draw_pool(dataset, START, 0, BackboneConfig(), Path())


def follow(name: str, drawn: Drawn, errors: float = 0.0, minutes: float = 60) -> tuple[Curve, Person]:
    person = make_person(drawn, Costs(), errors, seed=0)
    return record(WAYS[name].run(drawn.pool, person, Place(Path())), drawn, person, minutes), person


def all_names(name: str, drawn: Drawn, minutes: float) -> tuple[list[list[int]], set[int]]:
    """What a way called the rows within some minutes that no clock has a part in, and the rows it showed."""
    truth = drawn.truth.tolist()
    rng, known = np.random.default_rng(0), range(len(drawn.pool.known))
    person = Person(truth.__getitem__, drawn.names, known, Costs(), errors=0, rng=rng, clock=lambda: 0.0)
    said = []
    for y_class in WAYS[name].run(drawn.pool, person, Place(Path())):
        said.append(y_class.tolist())
        if person.seconds > 60 * minutes:
            break
    return said, person.shown


def check_curve(curve: Curve) -> None:
    moments = curve.moments
    for before, after in pairwise(moments):
        assert after.seconds >= before.seconds
        assert after.keys >= before.keys
        assert after.waited >= before.waited
    assert all(0 <= moment.right <= 1 and moment.waited <= moment.seconds for moment in moments)
    assert (moments[0].seconds, moments[0].keys, moments[0].right) == (0, 0, 0)
    assert moments[-1].right > 0.5


@pytest.mark.parametrize("errors", [0.0, 0.05])
@pytest.mark.parametrize("name", WITHOUT_PICTURES)
def test_time_and_keys_never_fall_and_most_names_become_right(name: str, errors: float) -> None:
    curve, person = follow(name, blobs(), errors)
    check_curve(curve)
    assert curve.n_hidden == 6 * 40 - 2 * 3
    assert person.decisions > 0


@pytest.mark.parametrize("name", WITHOUT_PICTURES)
def test_the_truth_of_rows_that_were_not_shown_changes_nothing(name: str) -> None:
    """So a way has nothing from anywhere but the person's mouth."""
    drawn = blobs()
    names, shown = all_names(name, drawn, minutes=0.5)
    hidden = np.setdiff1d(np.flatnonzero(drawn.is_hidden), list(shown))
    assert len(hidden) > 50
    lied: IntArray = drawn.truth.copy()
    lied[hidden] = (lied[hidden] + 1) % len(drawn.names)
    again, shown_again = all_names(name, replace(drawn, truth=lied), minutes=0.5)
    assert (names, shown) == (again, shown_again)
    assert not shown & set(np.flatnonzero(~drawn.is_hidden).tolist())  # nothing known is asked


@pytest.mark.parametrize("name", ["live", "live-ticks", "pages", "one-by-one"])
def test_ways_that_go_on_to_the_end_name_everything_rightly(name: str) -> None:
    curve, person = follow(name, blobs())
    assert curve.moments[-1].right == 1
    assert person.shown >= set(np.flatnonzero(blobs().is_hidden).tolist()) or name != "one-by-one"


def test_labelling_one_by_one_costs_what_the_sum_of_its_pictures_costs() -> None:
    drawn = blobs()
    curve, _ = follow("one-by-one", drawn)
    n, new = curve.n_hidden, [len(name) for name in drawn.names[2:]]
    keys = n + sum(new)  # one each, and the letters of four new names, whose Enter takes the place of the one
    assert curve.moments[-1].keys == keys
    assert curve.moments[-1].seconds == pytest.approx(n * (1.0 + 1.35) + keys * 0.28)
    assert curve.moments[-1].waited == 0


def test_with_errors_fewer_names_are_right() -> None:
    rights = [follow("one-by-one", blobs(), errors)[0].moments[-1].right for errors in (0.0, 0.02, 0.2)]
    assert rights == sorted(rights, reverse=True)
    assert rights[-1] == pytest.approx(0.8, abs=0.1)


def test_the_same_seed_draws_the_same_collection_and_another_a_different_one() -> None:
    dataset = load_data("toy", Path())
    drawn = [draw_pool(dataset, START, seed, BackboneConfig(), Path()) for seed in (0, 0, 1)]
    assert [d.names for d in drawn[:1]] == [d.names for d in drawn[1:2]]
    np.testing.assert_array_equal(drawn[0].pool.y_start, drawn[1].pool.y_start)
    assert drawn[0].names != drawn[2].names
    for one in drawn:
        labelled = one.pool.y_start >= 0
        assert np.bincount(one.pool.y_start[labelled]).tolist() == [3, 3]
        np.testing.assert_array_equal(one.pool.y_start[labelled], one.truth[labelled])
        assert (len(one.pool.known), one.pool.n_classes, len(one.truth)) == (2, 6, 240)


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (Start(20, 2, 3), "toy has 10 classes with more than 3 train rows, of which 20 cannot be drawn"),
        (Start(None, 2, 40), "toy has 0 classes with more than 40 train rows"),
        (Start(4, 5, 3), "--known is 5: 1 to 4 of 4 classes can be known"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(start: Start, piece: str) -> None:
    with pytest.raises(ConfigError, match=piece):
        draw_pool(load_data("toy", Path()), start, 0, BackboneConfig(), Path())


def test_an_unknown_way_is_guessed() -> None:
    with pytest.raises(ConfigError, match=r"Unknown way 'lives'. Did you mean 'live'\?"):
        check_ways(["lives"])
