"""Weights files by name: the user's own list of them, each with its SHA-256 and what network it belongs to.

``weights.json`` lies in the folder that AGCD_WEIGHTS names, else in ``weights`` of the cache. A file stays where it is
unless it was copied or fetched into that folder. Nothing here loads torch or opens a connection.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from agcd.errors import ConfigError, StorageError, WeightsError, did_you_mean
from agcd.io import default_cache, file_sha256, read_sealed, write_sealed

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


@dataclass(frozen=True)
class KnownWeights:
    """A weights file that has a name, and the facts about it."""

    name: str
    backbone: str
    """The timm model that it fills: ``backbone.name`` follows from it."""
    file: str
    sha256: str
    bytes: int
    image_size: int
    """The size of the images that it was pretrained on; any other that the patches divide will do."""
    patch_size: int | None
    licence: str | None
    source: str | None
    """Where it was fetched from; None for a file that was here."""
    added: str

    def problem(self) -> str | None:
        """What is wrong with the file, if anything: all of it is read."""
        path = Path(self.file)
        if not path.is_file():
            return f"{path} is not there: add the weights {self.name!r} again from where they are now"
        if path.stat().st_size != self.bytes or file_sha256(path) != self.sha256:
            return f"{path} is not the file that was added as {self.name!r}: put it back, or add it again"
        return None


def weights_folder() -> Path:
    """Where the list is, and the files that were copied or fetched."""
    return Path(os.environ.get("AGCD_WEIGHTS") or default_cache() / "weights")


def known_weights() -> dict[str, KnownWeights]:
    """The list by name, in the order of the names."""
    path = weights_folder() / "weights.json"
    try:
        stored = read_sealed(path)["weights"]
        return {name: KnownWeights(name=name, **facts) for name, facts in sorted(stored.items())}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StorageError(f"{path} is damaged: move it away and add the weights again.") from None


def get_known(name: str) -> KnownWeights:
    known = known_weights()
    if name not in known:
        raise WeightsError(f"There are no weights called {name!r}.{did_you_mean(name, known) if known else ''}")
    return known[name]


def check_name(name: str) -> None:
    """Refuse a name that could be taken for a file."""
    if not _NAME.fullmatch(name) or name.endswith(SUFFIXES):
        raise ConfigError(
            f"{name!r} cannot be the name of weights: small letters, digits, '.', '_' and '-' are expected, "
            f"and no ending of a file such as {SUFFIXES[0]}."
        )


def check_free(known: Mapping[str, KnownWeights], name: str, sha256: str) -> None:
    """Refuse a name that stands for another file."""
    if name in known and known[name].sha256 != sha256:
        raise ConfigError(f"{name!r} is the name of other weights, {known[name].file}: take another, or --replace.")


def keep(entry: KnownWeights, *, replace: bool = False) -> None:
    """Put an entry on the list; a name that stands for another file is taken from it only if it may be."""
    check_name(entry.name)
    with _changing() as known:
        if not replace:
            check_free(known, entry.name, entry.sha256)
        known[entry.name] = entry


def forget(name: str) -> KnownWeights:
    """Take an entry off the list; its file stays where it is."""
    entry = get_known(name)
    with _changing() as known:
        known.pop(name, None)
    return entry


@contextmanager
def _changing() -> Iterator[dict[str, KnownWeights]]:
    """The list, to be changed; nobody else changes it meanwhile."""
    folder = weights_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        known = known_weights()
        yield known
        plain = {
            name: {key: value for key, value in asdict(entry).items() if key != "name"} for name, entry in known.items()
        }
        write_sealed(folder / "weights.json", {"weights": plain})


def with_known_weights(backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the backbone in which a name of weights has become file, digest and model; others as they are."""
    values, given = dict(backbone), backbone.get("weights")
    if not isinstance(given, str) or not _NAME.fullmatch(given) or given.endswith(SUFFIXES):
        return values
    entry = known_weights().get(given)
    if entry is None:
        return values
    if values.get("name", entry.backbone) != entry.backbone:
        raise ConfigError(
            f"Setting 'backbone.name' is {values['name']!r}, but the weights {given!r} belong to {entry.backbone!r}: "
            "leave the name out."
        )
    return values | {"name": entry.backbone, "weights": entry.file, "weights_sha256": entry.sha256}
