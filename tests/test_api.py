"""``ActiveDiscovery`` as a scikit-learn user meets it."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import agcd.api
from agcd import ActiveDiscovery
from agcd.errors import ConfigError, DataError, WeightsError
from agcd.training import TRAINERS
from support.datasets import toy_images

SMALL: dict[str, Any] = {"train": {"base_epochs": 4, "round_epochs": 2, "projector_width": 16, "projector_dim": 8}}


def make_estimator(**changes: Any) -> ActiveDiscovery:
    return ActiveDiscovery(**{"n_classes": None, "settings": SMALL, "random_state": 0, **changes})


def blobs(n_per_class: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), n_per_class)
    return rng.normal(size=(len(truth), 5)) * 0.4 + 3 * np.eye(4, 5)[truth], truth


CHECKS = list(estimator_checks_generator(make_estimator()))


@pytest.mark.parametrize("check", [check for _, check in CHECKS], ids=lambda check: check.func.__name__)
def test_the_estimator_passes_the_checks_of_scikit_learn(check: Any) -> None:
    assert check(make_estimator()) is None


def test_the_example_in_the_documentation_runs() -> None:
    results = doctest.testmod(agcd.api)
    assert results.attempted > 5
    assert results.failed == 0


def test_string_labels_come_back_and_unnamed_classes_say_so() -> None:
    x, truth = blobs()
    names = np.array(["pear", "apple", "fig", "kiwi"], dtype=object)[truth]
    y = [name if t < 2 and i % 3 == 0 else None for i, (name, t) in enumerate(zip(names, truth, strict=True))]
    model = make_estimator(n_classes=4).fit(x, y)
    assert set(model.classes_) == {"apple", "pear", "unnamed #2", "unnamed #3"}
    rows = model.query(6)
    model.teach(rows, list(names[rows]))
    assert set(names[rows]) <= set(model.classes_)
    assert (model.predict(x) == names).mean() > 0.8
    labelled = [i for i, label in enumerate(y) if label is not None]
    assert (model.labels_[labelled] == names[labelled]).all()


def test_a_class_beyond_the_slots_grows_the_columns() -> None:
    x, truth = blobs()
    y = np.where((truth == 0) & (np.arange(120) % 3 == 0), truth, -1)
    model = make_estimator(n_classes=2).fit(x, y)
    assert model.predict_proba(x).shape == (120, 2)
    rows = np.array([31, 61, 91])
    model.teach(rows, truth[rows].astype(float))
    assert model.n_classes_ == 4
    assert sorted(model.classes_.tolist()) == [0, 1, 2, 3]
    assert model.predict_proba(x).shape == (120, 4)


def test_probabilities_sum_to_one_and_features_have_unit_length() -> None:
    x, truth = blobs()
    model = make_estimator(n_classes=4).fit(x, np.where(truth < 2, truth, -1))
    np.testing.assert_allclose(model.predict_proba(x).sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(model.transform(x), axis=1), 1, rtol=1e-5)


def test_nan_and_minus_one_and_none_all_mean_unlabelled() -> None:
    x, truth = blobs(10)
    known = (truth < 2) & (np.arange(40) % 2 == 0)
    variants: list[Any] = [
        np.where(known, truth, -1),
        np.where(known, truth.astype(float), np.nan),
        [int(t) if k else None for t, k in zip(truth, known, strict=True)],
    ]
    fitted = [make_estimator(n_classes=4).fit(x, y) for y in variants]
    for other in fitted[1:]:
        np.testing.assert_array_equal(fitted[0].predict_proba(x), other.predict_proba(x))
        assert other.classes_.tolist() == [0, 1, 2, 3]
        assert other.classes_.dtype == np.int64


def test_query_never_repeats_an_answered_row() -> None:
    x, truth = blobs(15)
    model = make_estimator(n_classes=4).fit(x, np.where(truth == 0, 0, -1))
    first = model.query(5)
    model.teach(first, truth[first])
    assert not set(first) & set(model.query(5))
    assert not (truth[model.query(60)] == 0).all()


def test_image_paths_are_accepted(tmp_path: Path) -> None:
    paths = sorted(toy_images(tmp_path / "images", n_classes=3, n_per_class=5).rglob("*.png"))
    names = [path.parent.name for path in paths]
    y = [name if i % 2 == 0 and name == names[0] else None for i, name in enumerate(names)]
    settings = SMALL | {"backbone": {"name": "toy", "views": 2, "image_size": 32}}
    model = make_estimator(settings=settings, cache_dir=tmp_path / "cache").fit([str(p) for p in paths], y)
    assert model.predict(paths[:4]).shape == (4,)
    assert set(model.query(3)) <= set(range(15))
    before = sorted((tmp_path / "cache").rglob("*"))
    np.testing.assert_allclose(model.predict_proba(paths[:3]), model.predict_proba(paths)[:3], atol=1e-5)
    assert sorted((tmp_path / "cache").rglob("*")) == before
    with pytest.raises(DataError, match="cannot be used"):
        model.predict([paths[0], tmp_path / "gone.png"])


def test_an_estimator_of_images_is_saved_with_its_backbone_named(tmp_path: Path) -> None:
    paths = sorted(toy_images(tmp_path / "images", n_classes=2, n_per_class=5).rglob("*.png"))
    settings = SMALL | {"backbone": {"name": "toy", "views": 2, "image_size": 32}}
    model = make_estimator(n_classes=2, settings=settings, cache_dir=tmp_path / "cache").fit(np.array(paths))
    model.save(tmp_path / "model")
    loaded = ActiveDiscovery.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(paths), model.predict_proba(paths))
    with pytest.raises(DataError, match="query needs the samples"):
        loaded.query(1)
    np.testing.assert_array_equal(ActiveDiscovery.load(tmp_path / "model", paths).query(3), model.query(3))


CARDS = ("Where is my new card?", "My card has not arrived", "When will the card come in the post?")
TOP_UPS = ("How do I top up?", "Can I top up with my bank account?", "My top up did not work")
THEFTS = ("Somebody has stolen my phone", "My phone was stolen on the train", "A thief took my phone")


def test_texts_are_discovered_saved_and_named(tmp_path: Path) -> None:
    texts = pd.Series([*CARDS, *TOP_UPS, *THEFTS])
    y = ["card", "card", None, "top up", "top up", None, None, None, None]
    model = make_estimator(n_classes=3, cache_dir=tmp_path / "cache").fit(texts, y)
    assert model.labels_[:6].tolist() == ["card"] * 3 + ["top up"] * 3
    model = model.teach([6], ["theft"])
    asked = ["they stole my telephone", "When does my card arrive?", "How do I top up?"]
    assert model.predict(asked).tolist() == ["theft", "card", "top up"]
    model.save(tmp_path / "bank.safetensors")
    again = ActiveDiscovery.load(tmp_path / "bank.safetensors")
    np.testing.assert_array_equal(again.predict_proba(texts), model.predict_proba(texts))


def test_an_estimator_of_texts_refuses_another_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_estimator(n_classes=2, cache_dir=tmp_path).fit([*CARDS, *TOP_UPS])
    model.save(tmp_path / "bank.safetensors")
    monkeypatch.setattr("agcd.features.text_encoders._WINDOWS", 1)  # it reads less of long texts
    with pytest.raises(WeightsError, match="another encoder"):
        ActiveDiscovery.load(tmp_path / "bank.safetensors")


def test_an_image_that_cannot_be_decoded_has_no_label(tmp_path: Path) -> None:
    paths = sorted(toy_images(tmp_path / "images", n_classes=2, n_per_class=5).rglob("*.png"))
    paths[3].write_bytes(paths[3].read_bytes()[:-40])
    settings = SMALL | {"backbone": {"name": "toy", "views": 2, "image_size": 32}}
    model = make_estimator(n_classes=2, settings=settings, cache_dir=tmp_path / "cache").fit(paths)
    assert model.labels_[3] == -1
    assert (np.delete(model.labels_, 3) >= 0).all()


def test_features_of_images_go_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGCD_CACHE", str(tmp_path / "elsewhere"))
    paths = sorted(toy_images(tmp_path / "images", n_classes=2, n_per_class=4).rglob("*.png"))
    settings = SMALL | {"backbone": {"name": "toy", "views": 2, "image_size": 32}}
    make_estimator(n_classes=2, settings=settings).fit(paths)
    assert list((tmp_path / "elsewhere").rglob("*.npy"))


@pytest.mark.parametrize("trainer", sorted(TRAINERS))
def test_every_trainer_discovers_classes_behind_the_same_face(trainer: str) -> None:
    x, truth = blobs()
    y = np.where((truth < 2) & (np.arange(120) % 3 == 0), truth, -1)
    model = make_estimator(n_classes=4, trainer=trainer).fit(x, y)
    model.teach(np.array([61, 91]), [2, 3])
    assert (model.predict(x) == truth).mean() > 0.9
    assert model.get_params()["trainer"] == trainer


def test_the_trainer_may_stand_in_the_settings_or_in_both_places_if_they_agree() -> None:
    x, truth = blobs(10)
    settings = {"train": {**SMALL["train"], "trainer": "gcd"}}
    y = np.where(truth == 0, 0, -1)
    fitted = [make_estimator(trainer=trainer, settings=settings).fit(x, y) for trainer in (None, "gcd")]
    fitted.append(make_estimator(trainer="gcd").fit(x, y))
    for other in fitted[1:]:
        np.testing.assert_array_equal(fitted[0].predict_proba(x), other.predict_proba(x))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda m, x: m.query(0), ConfigError, "budget"),
        (lambda m, x: m.teach([0, 1], ["a"]), DataError, "2 rows came with 1 labels"),
        (lambda m, x: m.teach([10_000], ["a"]), DataError, "Rows must lie in 0 to"),
        (lambda m, x: m.fit(x, [1, 2]), DataError, "y has 2 labels"),
        (lambda m, x: m.set_params(strategy="margn").fit(x).query(2), ConfigError, "Did you mean 'margin'"),
        (lambda m, x: m.set_params(settings={"train": {"lrr": 1}}).fit(x), ConfigError, "Did you mean 'lr'"),
        (lambda m, x: m.set_params(trainer="simgdc").fit(x), ConfigError, "Did you mean 'simgcd'"),
        (
            lambda m, x: m.set_params(trainer="pim", settings={"train": {"trainer": "gcd"}}).fit(x),
            ConfigError,
            "trainer='pim' contradicts the setting train.trainer, which is 'gcd'",
        ),
        (lambda m, x: m.set_params(n_classes=1000).fit(x), ConfigError, "too few for 1000 slots"),
    ],
)
def test_mistakes_are_one_sentence(call: Any, error: type[Exception], sentence: str) -> None:
    x, truth = blobs(10)
    model = make_estimator().fit(x, np.where(truth == 0, 0, -1))
    with pytest.raises(error, match=re.escape(sentence)):
        call(model, x)
