"""Weights files that get a name: tried in the network that they are said to fill, then put on the list."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from agcd.errors import ConfigError, WeightsError, did_you_mean
from agcd.features.backbones import network_facts
from agcd.fetch_weights import PUBLISHED, Published, fetch
from agcd.io import atomic_write, file_sha256
from agcd.known_weights import SUFFIXES, KnownWeights, check_free, check_name, keep, known_weights, weights_folder


def add_weights(
    name: str,
    file: Path,
    backbone: str,
    *,
    licence: str | None = None,
    source: str | None = None,
    copy: bool = False,
    replace: bool = False,
) -> KnownWeights:
    """Put a file on the list if it fills the network ``backbone``; copied, or left where it is."""
    check_name(name)
    if not file.is_file():
        raise WeightsError(f"There is no weights file at {file}.")
    image_size, patch_size = network_facts(backbone, file)
    place = file.absolute()
    if copy:
        place = _own_file(name, file.suffix)
        with atomic_write(place) as aside:
            shutil.copyfile(file, aside)
    entry = KnownWeights(
        name=name,
        backbone=backbone,
        file=str(place),
        sha256=file_sha256(place),
        bytes=place.stat().st_size,
        image_size=image_size,
        patch_size=patch_size,
        licence=licence,
        source=source,
        added=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    keep(entry, replace=replace)
    return entry


def get_weights(
    name: str,
    url: str | None,
    sha256: str | None,
    backbone: str | None,
    *,
    licence: str | None = None,
    replace: bool = False,
    say: Callable[[int, int], None] | None = None,
) -> KnownWeights:
    """Fetch what is published under ``name``, or what is at ``url``, and put it on the list."""
    check_name(name)
    wanted = _wanted(name, url, sha256, backbone, licence)
    if not replace:
        check_free(known_weights(), name, wanted.sha256)
    target = _own_file(name, Path(urlsplit(wanted.url).path).suffix)
    if not (target.is_file() and file_sha256(target) == wanted.sha256):
        fetch(wanted.url, wanted.sha256, target, say)
    return add_weights(name, target, wanted.backbone, licence=wanted.licence, source=wanted.url, replace=replace)


def _wanted(name: str, url: str | None, sha256: str | None, backbone: str | None, licence: str | None) -> Published:
    if url is None and sha256 is None and backbone is None:
        if name not in PUBLISHED:
            hint = did_you_mean(name, PUBLISHED)
            raise ConfigError(
                f"Nothing is published here as {name!r}: --url, --sha256 and --backbone say what it is.{hint}"
            )
        return PUBLISHED[name]
    if url is None or sha256 is None or backbone is None:
        raise ConfigError("--url, --sha256 and --backbone belong together: give all three.")
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ConfigError(f"{sha256!r} is no SHA-256: 64 hexadecimal digits are expected.")
    return Published(backbone, url, sha256.lower(), licence)


def _own_file(name: str, suffix: str) -> Path:
    if suffix not in SUFFIXES:
        raise WeightsError(f"A weights file ends in {', '.join(SUFFIXES)}, not in {suffix!r}.")
    return weights_folder() / f"{name}{suffix}"
