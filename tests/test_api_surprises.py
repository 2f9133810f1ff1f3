"""What data scientists try with ``ActiveDiscovery``: it does what they mean, or says in one sentence what it needs."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from PIL import Image
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from agcd import ActiveDiscovery
from agcd.errors import AgcdError, ConfigError, DataError, StorageError
from agcd.types import IntArray, PoolView

QUICK: dict[str, Any] = {"trainer": "logistic", "random_state": 0}
TRUTH = np.repeat(np.arange(3), 8)
X = (np.random.default_rng(0).normal(size=(24, 4)) * 0.3 + 3 * np.eye(3, 4)[TRUTH]).astype(np.float32)
GIVEN = (TRUTH < 2) & (np.arange(24) % 2 == 0)
Y = np.where(GIVEN, TRUTH, -1)
NAMES = np.array(["fig", "pear", "kiwi"], dtype=object)[TRUTH]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost more than they bring on two dozen samples."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(before)


def pick_first(view: PoolView, budget: int, rng: np.random.Generator, *, start: int = 0) -> IntArray:
    """Picks the first rows of the pool."""
    return view.rows[start : start + budget]


def fitted(y: Any = Y, x: Any = X, n_classes: Any = 3, **changes: Any) -> ActiveDiscovery:
    return ActiveDiscovery(n_classes, **{**QUICK, **changes}).fit(x, y)


@functools.cache
def shared() -> ActiveDiscovery:
    return fitted()


def model() -> ActiveDiscovery:
    """A fitted estimator of one's own; copying is cheaper than fitting."""
    return copy.deepcopy(shared())


def given(values: Any, missing: Any) -> list[Any]:
    return [value if known else missing for value, known in zip(values, GIVEN, strict=True)]


NUMBERS = TRUTH.tolist()
MISSING: dict[str, Any] = {
    "None": given(NUMBERS, None),
    "NaN": np.where(GIVEN, TRUTH.astype(float), np.nan),
    "minus one": Y,
    "minus one as a float": Y.astype(float),
    "pd.NA": pd.array(given(NUMBERS, pd.NA), dtype="Int64"),
    "pd.NaT": given(NUMBERS, pd.NaT),
    "a masked array": np.ma.masked_array(TRUTH, ~GIVEN),
    "a Series with another index": pd.Series(Y, index=np.arange(24)[::-1]),
    "a column of a table": pd.DataFrame({"y": Y}),
    "a tensor": torch.from_numpy(Y),
    "a Categorical": pd.Categorical(given(NUMBERS, None)),
    "small integers": Y.astype(np.int8),
}
MISSING_NAMES: dict[str, Any] = {
    "None among names": given(NAMES, None),
    "NaN among names": given(NAMES, np.nan),
    "an empty name": given(NAMES, ""),
    "minus one among names": given(NAMES, -1),
    "minus one that NumPy made a text": np.array(given(NAMES, "-1"), dtype=str),
    "pandas' own strings": pd.Series(given(NAMES, None), dtype="string"),
}


@pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)
def test_whatever_says_missing_is_unlabelled(y: Any) -> None:
    other = fitted(y)
    assert other.classes_.dtype == np.int64
    np.testing.assert_array_equal(other.classes_, shared().classes_)
    np.testing.assert_array_equal(other.predict_proba(X), shared().predict_proba(X))


@pytest.mark.parametrize("y", MISSING_NAMES.values(), ids=MISSING_NAMES)
def test_whatever_says_missing_among_names_is_unlabelled(y: Any) -> None:
    other = fitted(y)
    assert set(other.classes_) == {"fig", "pear", "unnamed #2"}
    np.testing.assert_array_equal(other.labels_[GIVEN], NAMES[GIVEN])


@pytest.mark.parametrize("rows", [[1, 3, 5, 17], (1, 3, 5, 17), np.array([1, 3, 5, 17]), pd.Index([1, 3, 5, 17])])
def test_teaching_what_nobody_knows_teaches_only_the_rest(rows: Any) -> None:
    taught = model().teach(rows, [None, -1, np.nan, 2])
    np.testing.assert_array_equal(taught.classes_, [0, 1, 2])
    assert set(np.flatnonzero(taught._session.labels.y_class >= 0)) == {*np.flatnonzero(GIVEN), 17}
    assert {1, 3, 5} <= set(taught.query(24)), "they may be asked about again"


TAUGHT: dict[str, tuple[Any, Any]] = {
    "a mask": (np.isin(np.arange(24), [1, 17]), [0, 2]),
    "a mask as a list": ([row in (1, 17) for row in range(24)], [0, 2]),
    "a mask as a Series": (pd.Series(np.isin(np.arange(24), [1, 17]), index=range(100, 124)), [0, 2]),
    "tensors": (torch.tensor([1, 17]), torch.tensor([0, 2])),
    "a Series with an index of its own": ([1, 17], pd.Series([0, 2], index=[7, 3])),
    "floats that are whole": ([1, 17], [0.0, 2.0]),
    "the same answer twice": ([1, 17, 17], [0, 2, 2]),
    "unsigned rows": (np.array([1, 17], np.uint8), np.array([0, 2], np.uint8)),
}


@pytest.mark.parametrize(("rows", "labels"), TAUGHT.values(), ids=TAUGHT)
def test_rows_may_be_named_in_any_way(rows: Any, labels: Any) -> None:
    expected = model().teach([1, 17], [0, 2])
    taught = model().teach(rows, labels)
    np.testing.assert_array_equal(taught.predict_proba(X), expected.predict_proba(X))


def test_one_row_and_its_label_need_no_lists() -> None:
    np.testing.assert_array_equal(model().teach(17, 2).classes_, [0, 1, 2])
    assert "kiwi" in fitted(MISSING_NAMES["an empty name"]).teach(17, "kiwi").classes_


def test_a_label_that_was_wrong_can_be_corrected() -> None:
    taught = model().teach([0], [1])
    assert taught.labels_[0] == 1


SAMPLES: dict[str, Any] = {
    "a list of lists": X.tolist(),
    "a table": pd.DataFrame(X, columns=list("abcd")),
    "a table with an index of its own": pd.DataFrame(X, index=np.arange(24) * 7),
    "a tensor": torch.from_numpy(X),
    "a tensor with gradients": torch.from_numpy(X).requires_grad_(),
    "a list of tensors": list(torch.from_numpy(X)),
    "float64": X.astype(np.float64),
    "columns first": np.asfortranarray(X),
}


@pytest.mark.parametrize("x", SAMPLES.values(), ids=SAMPLES)
def test_samples_may_be_any_table_of_numbers(x: Any) -> None:
    other = fitted(x=x)
    np.testing.assert_allclose(other.predict_proba(x), shared().predict_proba(X), atol=1e-6)


def test_truth_values_stay_truth_values() -> None:
    y = given((TRUTH == 0).tolist(), None)
    both = fitted(y, n_classes=2)
    assert both.classes_.dtype == np.bool_
    assert set(both.predict(X).tolist()) == {True, False}
    more = fitted(y)
    assert [type(label) for label in more.classes_] == [bool, bool, str]
    assert more.labels_[0] is True


def test_names_are_text_and_numbers_are_numbers_all_the_way() -> None:
    names = fitted(MISSING_NAMES["None among names"])
    assert {type(label) for label in names.predict(X)} == {str}
    assert shared().predict(X).dtype == np.int64
    assert shared().labels_.dtype == np.int64


def test_the_name_of_an_unnamed_class_can_be_taught() -> None:
    names = fitted(MISSING_NAMES["None among names"])
    names.teach([17, 1], ["unnamed #2", "unnamed #0"])
    assert len(set(names.classes_)) == names.n_classes_


def test_no_labels_at_all_is_a_clustering() -> None:
    for y in (None, np.full(24, -1), [None] * 24):
        assert fitted(y, n_classes=None).n_classes_ == 8


def test_auto_estimates_the_number_of_classes() -> None:
    found = fitted(n_classes="auto")
    assert found.n_classes_estimate_ is not None
    assert found.n_classes_ == found.n_classes_estimate_.n >= 2
    assert fitted(None, n_classes="auto").n_classes_ == 5  # the root of 24
    assert shared().n_classes_estimate_ is None


def test_fitting_again_forgets_what_was_there() -> None:
    again = model().fit(X, MISSING_NAMES["None among names"])
    assert "fig" in again.classes_
    np.testing.assert_array_equal(model().fit(X, Y).predict_proba(X), shared().predict_proba(X))


def test_a_query_can_say_why() -> None:
    asked = shared().query(3, return_reasons=True)
    np.testing.assert_array_equal(asked.rows, shared().query(3))
    assert len(asked.reasons) == len(asked.scores) == 3
    assert all("slot" in reason for reason in asked.reasons)
    assert asked.strategy == "propagation_herding"


def test_a_query_for_more_than_there_is_gives_what_there_is() -> None:
    assert sorted(shared().query(1000)) == np.flatnonzero(~GIVEN).tolist()


def test_a_function_is_a_strategy() -> None:
    pool = np.flatnonzero(~GIVEN)
    own = fitted(strategy=pick_first)
    np.testing.assert_array_equal(own.query(3), pool[:3])
    assert own.query(1, return_reasons=True).strategy == "test_api_surprises:pick_first"
    shifted = fitted(strategy=pick_first, settings={"query": {"options": {"start": 2}}})
    np.testing.assert_array_equal(shifted.query(2), pool[2:4])
    np.testing.assert_array_equal(fitted(strategy=lambda view, budget, rng: view.rows[-budget:]).query(2), pool[-2:])
    np.testing.assert_array_equal(fitted(strategy=functools.partial(pick_first, start=1)).query(1), pool[1:2])


def test_parameters_survive_clone_and_set_params() -> None:
    estimator = clone(ActiveDiscovery("auto", strategy=pick_first, verbose=1))
    assert estimator.get_params()["strategy"] is pick_first
    assert estimator.set_params(strategy="margin").get_params()["strategy"] == "margin"


def test_a_fitted_estimator_can_be_pickled() -> None:
    other = pickle.loads(pickle.dumps(fitted(strategy=pick_first, verbose=1)))
    np.testing.assert_array_equal(other.query(3), np.flatnonzero(~GIVEN)[:3])
    np.testing.assert_array_equal(other.teach([17], [2]).predict_proba(X), model().teach([17], [2]).predict_proba(X))


def test_progress_is_told_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    small = {"train": {"base_epochs": 2, "projector_width": 8, "projector_dim": 4}}
    fitted(trainer="simgcd", settings=small)
    assert capsys.readouterr() == ("", "")
    fitted(trainer="simgcd", settings=small, verbose=1)
    assert capsys.readouterr() == ("", "epoch 1 of 2\nepoch 2 of 2\nround 0 is trained on 8 labels\n")


MISTAKES: dict[str, tuple[Callable[[], Any], type[AgcdError], str]] = {
    "a mask of another length": (
        lambda: model().teach([True, False], [1]),
        DataError,
        "mask has the shape (2,); (24,)",
    ),
    "float rows": (lambda: model().teach([1.5], [1]), DataError, "Rows of type float64"),
    "negative rows": (lambda: model().teach([-1], [1]), DataError, "Rows must lie in 0 to 23"),
    "two answers": (lambda: model().teach([3, 3], [0, 1]), DataError, "Row 3 is called 0 and 1"),
    "nothing known": (lambda: model().teach([1, 2], [None, -1]), DataError, "All of the 2 labels are missing"),
    "no rows": (lambda: model().teach([], []), DataError, "nothing to learn"),
    "one text for two rows": (lambda: model().teach([1, 2], "ab"), DataError, "labels is the one text 'ab'"),
    "names after numbers": (lambda: model().teach([1], ["kiwi"]), DataError, "whole numbers (0) and text ('kiwi')"),
    "True after numbers": (lambda: model().teach([1], [True]), DataError, "truth values (True)"),
    "mixed labels": (lambda: fitted([1, "fig"] * 12), DataError, "whole numbers (1) and text ('fig')"),
    "continuous labels": (lambda: fitted(X[:, 0]), DataError, "text, whole numbers or truth values"),
    "infinite labels": (lambda: fitted([np.inf] * 24), DataError, "y holds inf"),
    "one-hot labels": (lambda: fitted(np.eye(3)[TRUTH]), DataError, "y has the shape (24, 3)"),
    "lists as labels": (lambda: fitted([[1], [1, 2]] * 12), DataError, "y holds [1]"),
    "dates as labels": (lambda: fitted(pd.Series(pd.date_range("2026", periods=24))), DataError, "y holds Timestamp"),
    "too large labels": (lambda: fitted([2**70, *NUMBERS[1:]]), DataError, "too large"),
    "NaN that became a text": (lambda: fitted(np.array(given(NAMES, "nan"), str)), DataError, "the text 'nan'"),
    "too few labels": (lambda: fitted(Y[:-1]), DataError, "y has 23 labels for 24 samples"),
    "a set of labels": (lambda: fitted({1, 2}), DataError, "y has the shape ()"),
    "a wrong strategy": (lambda: fitted(strategy="badger"), ConfigError, "Did you mean 'badge'?"),
    "a strategy of other arguments": (lambda: fitted(strategy=lambda view: view.rows), ConfigError, "cannot be called"),
    "an option it has not": (
        lambda: fitted(strategy=pick_first, settings={"query": {"options": {"begin": 1}}}),
        ConfigError,
        "has no option 'begin'",
    ),
    "a strategy that returns positions": (
        lambda: fitted(strategy=lambda view, budget, rng: np.arange(budget)).query(3),
        AgcdError,
        "did it return positions?",
    ),
    "a wrong trainer": (lambda: fitted(trainer="logistics"), ConfigError, "Did you mean 'logistic'?"),
    "classes by another word": (lambda: fitted(n_classes="many"), ConfigError, "n_classes is 'many'"),
    "no classes": (lambda: fitted(n_classes=0), ConfigError, "n_classes is 0; a whole number from 2"),
    "half a class": (lambda: fitted(n_classes=2.5), ConfigError, "n_classes is 2.5"),
    "fewer classes than labels": (lambda: fitted(TRUTH, n_classes=2), ConfigError, "3 classes have labels"),
    "half a question": (lambda: model().query(X[0, 0]), ConfigError, "whole number of samples"),
    "nothing left to ask": (lambda: fitted(TRUTH).query(1), DataError, "nothing left to ask"),
    "NaN in the samples": (lambda: fitted(x=np.where(X[5, 2] == X, np.nan, X)), DataError, "the first is row 5"),
    "sparse samples": (lambda: fitted(x=scipy.sparse.csr_array(X)), DataError, "X is sparse"),
    "text in the table": (lambda: fitted(x=pd.DataFrame({"a": NAMES, "b": 1})), DataError, "'fig'"),
    "pictures in memory": (lambda: fitted(x=[Image.new("RGB", (8, 8))] * 24), DataError, "give their paths"),
    "pictures as one array": (lambda: fitted(x=np.zeros((24, 8, 8, 3))), DataError, "X has the shape (24, 8, 8, 3)"),
    "a torch Dataset": (lambda: fitted(x=torch.utils.data.TensorDataset(torch.zeros(3))), DataError, "a TensorDataset"),
    "a generator": (lambda: fitted(x=(row for row in X)), DataError, "X is a generator"),
    "one path": (lambda: fitted(x="photos"), DataError, "X is the one path or text 'photos'"),
    "a table of paths": (lambda: fitted(x=pd.DataFrame({"path": NAMES})), DataError, "X['path']"),
    "paths with a hole": (lambda: fitted(x=["a.png", None]), DataError, "image paths or texts and None"),
    "paths with a text": (lambda: fitted(x=["a.png", "b.png", "a bee"]), DataError, "image paths and 'a bee'"),
    "an empty text": (lambda: fitted(x=["a bee", " "]), DataError, "row 1 is empty"),
    "a file that is not there": (lambda: ActiveDiscovery.load("nowhere"), DataError, "no saved estimator at nowhere"),
}


@pytest.mark.parametrize(("call", "error", "piece"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence(call: Callable[[], Any], error: type[AgcdError], piece: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert piece in str(caught.value)
    assert str(caught.value).endswith((".", "?"))
    assert "\n" not in str(caught.value)


def test_a_mistake_leaves_the_estimator_as_it_was() -> None:
    own = model()
    for labels in (["kiwi", "fig"], [None, None], [0, 1.5], [0]):
        with pytest.raises(DataError):
            own.teach([1, 2], labels)
    with pytest.raises(DataError):
        own.fit(X, [1])
    np.testing.assert_array_equal(own.predict_proba(X), shared().predict_proba(X))
    np.testing.assert_array_equal(own.query(3), shared().query(3))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    taught = fitted(MISSING_NAMES["None among names"], strategy=pick_first).teach([17], ["kiwi"])
    taught.save(tmp_path / "fruit.safetensors")
    return tmp_path / "fruit.safetensors"


def test_a_loaded_estimator_says_the_same_without_the_samples(saved: Path) -> None:
    original = fitted(MISSING_NAMES["None among names"]).teach([17], ["kiwi"])
    loaded = ActiveDiscovery.load(saved)
    np.testing.assert_array_equal(loaded.predict_proba(X), original.predict_proba(X))
    np.testing.assert_array_equal(loaded.transform(X), original.transform(X))
    np.testing.assert_array_equal(loaded.labels_, original.labels_)
    np.testing.assert_array_equal(loaded.predict(X), original.predict(X))
    for needs_samples in (lambda: loaded.query(1), lambda: loaded.teach([1], ["fig"])):
        with pytest.raises(DataError, match=r"needs the samples .* load\(path, X\)"):
            needs_samples()
    with pytest.raises(ValueError, match="4 features"):
        loaded.predict(X[:, :2])


def test_a_loaded_estimator_goes_on_where_it_stopped(saved: Path) -> None:
    loaded = ActiveDiscovery.load(saved, X)
    np.testing.assert_array_equal(loaded.query(3), np.setdiff1d(np.flatnonzero(~GIVEN), 17)[:3])
    loaded.teach([1, 9], ["fig", "pear"])
    original = fitted(MISSING_NAMES["None among names"]).teach([17], ["kiwi"]).teach([1, 9], ["fig", "pear"])
    np.testing.assert_array_equal(loaded.predict_proba(X), original.predict_proba(X))
    with pytest.raises(DataError, match="X is not what the estimator was fitted on"):
        ActiveDiscovery.load(saved, X[::-1])


def test_what_was_loaded_can_be_saved_again(saved: Path, tmp_path: Path) -> None:
    ActiveDiscovery.load(saved).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "fruit.safetensors"]


def test_a_damaged_file_is_refused(saved: Path, tmp_path: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[-5] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    (tmp_path / "short").write_bytes(content[: len(content) // 2])
    for name in ("damaged", "short"):
        with pytest.raises(StorageError, match=f"{name} is damaged"):
            ActiveDiscovery.load(tmp_path / name)


def test_parameters_come_back_and_a_function_by_its_name(saved: Path, tmp_path: Path) -> None:
    loaded = ActiveDiscovery.load(saved)
    assert loaded.get_params()["strategy"] == "test_api_surprises:pick_first"
    assert loaded.get_params() | {"strategy": None} == ActiveDiscovery(3, **QUICK).get_params()
    nameless = fitted(strategy=lambda view, budget, rng: view.rows[:budget])
    with pytest.raises(ConfigError, match="no other program can import"):
        nameless.save(tmp_path / "nameless")
    assert not (tmp_path / "nameless").exists()
