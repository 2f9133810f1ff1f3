from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from agcd.accuracy import CHOSEN, DRAWN, GIVEN, POOL
from agcd.asking import Asking
from agcd.evidence import NO_CLASS
from agcd.signs import MOST_GIVEN, belief_accuracy, judge, labelled_signs, logits, pool_signs
from agcd.types import IntArray

N_BLOBS = 5


def blobs(seed: int = 0, n: int = 120, width: float = 0.6) -> tuple[NDArray[np.float64], IntArray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % N_BLOBS
    return 4 * np.eye(8)[y] + width * rng.normal(size=(n, 8)), y


def some_labels(y: IntArray, n: int = 20) -> tuple[IntArray, IntArray]:
    """The first rows labelled: two classes given at the start, the rest asked about."""
    y_class = np.where(np.arange(len(y)) < n, y, -1)
    asked = np.where(np.arange(len(y)) % 2, CHOSEN, DRAWN)
    return y_class, np.where(y_class < 0, POOL, np.where(y < 2, GIVEN, asked))


def test_a_labelled_row_looks_as_if_its_label_had_never_been_given() -> None:
    """Against a twin that is built without the label; only the middle amount of evidence may differ a little."""
    x, y = blobs(width=1.2)
    y_class, kind = some_labels(y)
    rows, signs = labelled_signs(Asking(x, y_class), y_class, kind)
    for i, row in enumerate(rows.tolist()):
        less = y_class.copy()
        less[row] = -1
        others, twin = pool_signs(Asking(x, less), less, kind)
        j = int(np.flatnonzero(others == row)[0])
        assert signs.covered[i] == pytest.approx(twin.covered[j], abs=1e-6)
        assert signs.margin[i] == pytest.approx(twin.margin[j], abs=0.03)
        assert signs.unnamed[i] == pytest.approx(twin.unnamed[j], abs=0.03)
        if twin.margin[j] > 0.03:
            for name in ("y_class", "near_agrees", "n_labels", "is_given"):
                assert getattr(signs, name)[i] == getattr(twin, name)[j], name


def test_the_only_label_of_a_class_cannot_be_believed_without_itself() -> None:
    x, y = blobs()
    y_class = np.full(len(y), -1)
    y_class[:3] = y[:3]
    kind = np.where(y_class < 0, POOL, CHOSEN)
    _, signs = labelled_signs(Asking(x, y_class), y_class, kind)
    assert (signs.y_class != y[:3]).all()


def test_coverage_of_the_pool_is_that_of_asking() -> None:
    x, y = blobs()
    y_class, kind = some_labels(y)
    asking = Asking(x, y_class)
    rows, signs = pool_signs(asking, y_class, kind)
    np.testing.assert_allclose(signs.covered, asking.covered[rows], atol=1e-6)


def test_without_any_label_nothing_is_believed_and_the_figure_is_low() -> None:
    x, y = blobs()
    y_class, kind = np.full(len(y), -1), np.full(len(y), POOL)
    asking = Asking(x, y_class)
    _, signs = pool_signs(asking, y_class, kind)
    assert (signs.y_class == NO_CLASS).all()
    assert np.isfinite(logits(signs)).all()
    assert belief_accuracy(asking, y_class, kind).low >= 0


def test_clear_blobs_get_a_high_figure_and_shuffled_classes_a_low_one() -> None:
    x, y = blobs(n=300)
    y_class, kind = some_labels(y, 60)
    clear = belief_accuracy(Asking(x, y_class), y_class, kind)
    shuffled = np.random.default_rng(0).permutation(y)
    y_class, kind = some_labels(shuffled, 60)
    mixed = belief_accuracy(Asking(x, y_class), y_class, kind)
    assert clear.mean > 0.9
    assert mixed.mean < 0.5


def test_permuting_rows_changes_nothing() -> None:
    x, y = blobs(width=1.5)
    y_class, kind = some_labels(y)
    order = np.random.default_rng(1).permutation(len(y))
    one = belief_accuracy(Asking(x, y_class), y_class, kind)
    other = belief_accuracy(Asking(x[order], y_class[order]), y_class[order], kind[order])
    assert one.mean == pytest.approx(other.mean, abs=5e-3)
    assert one.low == pytest.approx(other.low, abs=5e-3)


def test_a_label_that_is_taken_back_leaves_no_trace() -> None:
    x, y = blobs()
    y_class, kind = some_labels(y)
    asking = Asking(x, y_class)
    before = judge(asking, y_class, kind).shift
    asking.beliefs.add(np.array([50]), int(y[50]))
    asking.beliefs.remove(np.array([50]), int(y[50]))
    after = judge(asking, y_class, kind).shift
    assert after.mean == pytest.approx(before.mean, abs=1e-3)


def test_of_many_given_rows_some_are_looked_at_and_of_asked_rows_all() -> None:
    x, y = blobs(n=600)
    y_class = np.where(np.arange(600) < 400, y, -1)
    kind = np.where(y_class < 0, POOL, np.where(np.arange(600) < 300, GIVEN, CHOSEN))
    rows, _ = labelled_signs(Asking(x, y_class), y_class, kind)
    assert (kind[rows] == GIVEN).sum() == MOST_GIVEN
    assert (kind[rows] == CHOSEN).sum() == 100
