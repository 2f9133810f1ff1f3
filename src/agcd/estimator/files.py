"""A fitted estimator as one safetensors file: weights, labels and plain facts, with a digest of all; nothing in it is
code, and nothing is executed when it is read. The training samples are not in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agcd import __version__
from agcd.config import Config, make_config
from agcd.errors import ConfigError, DataError, StorageError
from agcd.features.remembered import remember
from agcd.features.rows import RowFeatures
from agcd.plugins import place_of
from agcd.session import Round, Session
from agcd.training.fitted import Fitted
from agcd.training.loop import Log, load_tensors, save_tensors
from agcd.types import IntArray, LabelMapping, LabelState

FORMAT = 1
"""Raise when older programs could no longer read what is written."""
_LABEL_ARRAYS = ("y_class", "asked_round", "held_out", "passed")


@dataclass(frozen=True)
class Saved:
    """What was read of a file: plain facts, and tensors by name."""

    path: Path
    facts: dict[str, Any]
    tensors: dict[str, Any]

    @property
    def config(self) -> Config:
        return make_config(self.facts["settings"])

    @property
    def y_slot(self) -> IntArray:
        return np.asarray(self.tensors["y_slot"].numpy())

    def session(self, features: RowFeatures, *, echo: Log | None, strategy: Any) -> Session:
        """The session as it stood, over features of the same samples or over what is remembered of them."""
        facts = self.facts
        arrays = {name: self.tensors[f"labels.{name}"].numpy() for name in _LABEL_ARRAYS}
        labels = LabelState(tuple(facts["classes"]), facts["n_old"], **arrays)
        session = Session(features, labels, self.config, facts["n_slots"], echo=echo, strategy=strategy)
        session.rounds = [self._round(number, known, features) for number, known in enumerate(facts["rounds"])]
        return session

    def _round(self, number: int, known: Mapping[str, Any], features: RowFeatures) -> Round:
        start = f"round.{number}."
        own = {name.removeprefix(start): t for name, t in self.tensors.items() if name.startswith(start)}
        first, last = LabelMapping.from_json(known["first"]), LabelMapping.from_json(known["last"])
        return Round(
            number, known["key"], Fitted.restored(own, known["model"], features), first, last, known["metrics"]
        )


def write_saved(path: Path, session: Session, y_slot: IntArray, facts: Mapping[str, Any]) -> None:
    """Write a session and more facts about its estimator, whole or not at all."""
    tensors: dict[str, Any] = {f"labels.{name}": getattr(session.labels, name) for name in _LABEL_ARRAYS}
    tensors["y_slot"] = y_slot
    rounds = []
    for number, done in enumerate(session.rounds):
        weights, model = done.fitted.state()
        tensors |= {f"round.{number}.{name}": tensor for name, tensor in weights.items()}
        mappings = {"first": done.first.to_json(), "last": done.last.to_json()}
        rounds.append({"key": done.key, "metrics": done.metrics, "model": model, **mappings})
    about = {
        "format": FORMAT,
        "agcd_version": __version__,
        "settings": session.config.model_dump(mode="json"),
        "classes": session.labels.classes,
        "n_old": session.labels.n_old,
        "n_slots": session.n_slots,
        "rounds": rounds,
        "features": remember(session.features),
    }
    save_tensors(path, tensors, {**about, **facts})


def read_saved(path: Path) -> Saved:
    """What ``write_saved`` wrote, unchanged since."""
    if not path.is_file():
        raise DataError(f"There is no saved estimator at {path}.")
    tensors, facts = load_tensors(path)
    if facts.get("format") != FORMAT:
        raise StorageError(f"{path} has format {facts.get('format')!r}; this version of agcd reads format {FORMAT}.")
    return Saved(path, facts, tensors)


def plain_parameters(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The parameters of an estimator as JSON can hold them; of a generator of random numbers the seed that it gave."""
    values = dict(parameters)
    if callable(values["strategy"]):
        values["strategy"] = _importable(values["strategy"])
    if not isinstance(values["random_state"], int | np.integer | None):
        values["random_state"] = seed
    try:
        plain: dict[str, Any] = json.loads(json.dumps(values, default=_plain))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"A parameter of the estimator cannot be stored as JSON: {error}.") from None
    return plain


def _importable(strategy: Callable[..., Any]) -> str:
    place = place_of(strategy)
    if place is None or place.startswith("__main__:"):
        raise ConfigError(
            "The strategy is a function that no other program can import, so it cannot be saved: "
            "put it into a module, or set_params(strategy=None) first."
        )
    return place


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r:.60} is a {type(value).__name__}")
