from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from agcd.arrays import unit
from agcd.asking import Asking, coverage_kernel
from agcd.herding import neighbour_sigma2
from agcd.propagation import nearest

N_BLOBS = 5


def blobs(seed: int = 0, n: int = 100) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows around five directions, and which."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % N_BLOBS
    return 4 * np.eye(8)[y] + 0.4 * rng.normal(size=(n, 8)), y


def unlabelled(n: int = 100) -> NDArray[np.int64]:
    return np.full(n, -1)


def test_the_first_questions_find_every_blob() -> None:
    x, y = blobs()
    asking = Asking(x, unlabelled())
    found = []
    for _ in range(N_BLOBS):
        row = asking.next()
        asking.tell(row, int(y[row]))
        found.append(int(y[row]))
    assert sorted(found) == list(range(N_BLOBS))


def test_gains_are_the_uncertainty_that_a_row_would_newly_cover() -> None:
    """Against a twin with the whole kernel: the pool is small enough for every row to be a neighbour of every other."""
    x, y = blobs()
    labels = unlabelled()
    labels[:7] = y[:7]
    asking = Asking(x, labels)
    u = unit(x)
    square = np.maximum(2 - 2 * u @ u.T, 0)
    kernel = np.exp(-square / neighbour_sigma2(u))
    covered = kernel[:7].max(0)
    weights = np.where(labels < 0, 1 - asking.beliefs.at().margin, 0)
    expected = (weights[:, None] * np.maximum(kernel - covered[:, None], 0)).sum(0)
    np.testing.assert_allclose(asking.gains(), expected, rtol=1e-3, atol=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(-2, N_BLOBS - 1)), max_size=15))
def test_following_answers_questions_and_what_is_taken_back_equals_starting_anew(said: list[tuple[int, int]]) -> None:
    x, _ = blobs()
    labels, asked = unlabelled(), set[int]()
    asking, kept = Asking(x, labels), []
    for row, y_class in said:  # −2 is a question without an answer, −1 takes back whatever there was
        labels[row] = max(y_class, -1)
        (asked.add if y_class == -2 else asked.discard)(row)
        asking.follow(labels, np.array(sorted(asked), np.int64))
        kept.append((asking.moment(), asking.belief))
    anew = Asking(x, labels)
    anew.follow(labels, np.array(sorted(asked), np.int64))
    np.testing.assert_allclose(asking.gains(), anew.gains(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose([asking.gain(row) for row in range(5)], asking.gains()[:5], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(asking.belief.margin, anew.belief.margin, atol=1e-4)
    np.testing.assert_array_equal(asking.may_ask, anew.may_ask)
    for moment, belief in kept:
        np.testing.assert_array_equal(moment.beliefs.at().margin, belief.margin)


def test_a_question_that_waits_for_its_answer_is_not_asked_again_nor_are_its_copies() -> None:
    x, _ = blobs()
    x[50] = x[51] = x[52]
    asking = Asking(x, unlabelled())
    asking.cover([50])
    asked = [asking.next()]
    assert 50 not in asked
    assert asking.gains()[51] == pytest.approx(0, abs=1e-3)


def test_only_rows_that_may_be_asked_are_asked_and_never_twice() -> None:
    x, y = blobs()
    may_ask = np.zeros(100, bool)
    may_ask[[3, 14, 15, 92]] = True
    asking, asked = Asking(x, unlabelled(), may_ask), []
    for _ in range(4):
        asked.append(asking.next())
        asking.tell(asked[-1], int(y[asked[-1]]))
    assert sorted(asked) == [3, 14, 15, 92]
    with pytest.raises(IndexError, match="every row"):
        asking.next()


def test_an_answer_moves_the_next_question_away_from_what_it_makes_clear() -> None:
    x, y = blobs()
    asking = Asking(x, unlabelled())
    first = asking.next()
    asking.tell(first, 0)
    assert y[asking.next()] != y[first]


def test_the_kernel_is_symmetric_and_every_row_covers_itself() -> None:
    x = unit(blobs()[0]).astype(np.float32)
    kernel = coverage_kernel(*nearest(x, 10), 0.5).toarray()
    np.testing.assert_allclose(kernel, kernel.T)
    np.testing.assert_allclose(np.diag(kernel), 1)
    assert ((kernel > 0).sum(1) >= 11).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools_of_hardly_any_rows_can_be_asked(n: int) -> None:
    x = np.random.default_rng(0).normal(size=(n, 3))
    asking, asked = Asking(x, unlabelled(n)), []
    for _ in range(n):
        asked.append(asking.next())
        asking.tell(asked[-1], 0)
    assert sorted(asked) == list(range(n))


def test_rows_without_a_direction_and_equal_rows_can_be_asked() -> None:
    asking = Asking(np.zeros((30, 4)), unlabelled(30))
    asking.tell(asking.next(), 0)
    assert asking.next() not in np.flatnonzero(~asking.may_ask)
