"""Weights from the network, for ``agcd weights get`` alone: nothing else ever opens a connection.

An entry of ``PUBLISHED`` is pinned to a revision and to the SHA-256 that the hub shows for the file at that revision.
What arrives is compared with it before it gets its name: a hub that changes its mind is an error and not another model.
"""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from agcd.errors import ConfigError, WeightsError
from agcd.io import atomic_write

SCHEMES = frozenset({"https"})
MAX_BYTES = 8 * 2**30
_PIECE = 2**20
_SECONDS = 60.0


@dataclass(frozen=True)
class Published:
    """A file at one revision of a model hub."""

    backbone: str
    url: str
    sha256: str
    licence: str | None


def _hub(backbone: str, revision: str, file: str, sha256: str) -> Published:
    return Published(
        backbone, f"https://huggingface.co/timm/{backbone}/resolve/{revision}/{file}", sha256, "apache-2.0"
    )


PUBLISHED = {
    "dino-vitb16": _hub(
        "vit_base_patch16_224.dino",
        "9578d3895b3c81965d4fb6de0ffb14491b6fc8f9",
        "model.safetensors",
        "93181583427d6de3e18ab0e6ee4df35736cfc51a3c1bf9ae0e9b53b1316598dc",
    ),
    "dino-vitb8": _hub(
        "vit_base_patch8_224.dino",
        "57b4c6dac26b2cff845bfbed5bf37c9dd32ec496",
        "model.safetensors",
        "01be14b99784a4c0970a5703214513588daf27014e908ac7ea08967b7bd80f5f",
    ),
    "dino-vits16": _hub(
        "vit_small_patch16_224.dino",
        "a0b40130d29ebc347b9bf146a1ecf0edf3fdca60",
        "pytorch_model.bin",
        "49a1c6cc0534ac3f4c7ec18cc6e24374952f602e87a12271648fca99f84ca898",
    ),
    "dino-vits8": _hub(
        "vit_small_patch8_224.dino",
        "06cd8ed4b3fcef6305223df082ef8c19bc775704",
        "model.safetensors",
        "e1b79616ce6d1b8dc3cc0d5952b6d0958356a189122882493e665d28f20654a0",
    ),
    "dinov2-vitb14": _hub(
        "vit_base_patch14_dinov2.lvd142m",
        "1926dc569694559b394898d7ba5d88a775301036",
        "model.safetensors",
        "55cbb5d887b336d430e649c277b85a1429e724871f9d02ac16203235886d8c7b",
    ),
}


class _OnlySafe(urllib.request.HTTPRedirectHandler):
    """Follows a redirection only to an address that could have been given."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        try:
            _check_url(newurl)
        except ConfigError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(url: str, sha256: str, target: Path, say: Callable[[int, int], None] | None = None) -> None:
    """Write what is at ``url`` to ``target``, if it has this SHA-256; what was broken off begins anew.

    ``say`` gets how many bytes have come, and how many there are (0: the server does not say).
    """
    _check_url(url)
    with _as_weights_error(url):
        answer = urllib.request.build_opener(_OnlySafe).open(url, timeout=_SECONDS)
    with answer, atomic_write(target) as aside:
        found = _copy(answer, aside, say)
        if found != sha256:
            raise WeightsError(f"What {url} gave has the SHA-256 {found}, not {sha256}: nothing was kept.")


@contextmanager
def _as_weights_error(url: str) -> Iterator[None]:
    """Whatever goes wrong on the way, in one sentence; a fault of the disk is none of it."""
    try:
        yield
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError):  # it holds the connection
            error.close()
        raise WeightsError(f"{url} cannot be fetched: {getattr(error, 'reason', error)}.") from None


def _copy(answer: Any, aside: Path, say: Callable[[int, int], None] | None) -> str:
    """The SHA-256 of what came."""
    total, done, digest = int(answer.headers.get("Content-Length") or 0), 0, hashlib.sha256()
    with aside.open("wb") as file:
        while max(done, total) <= MAX_BYTES:
            with _as_weights_error(answer.url):
                piece = answer.read(_PIECE)
            if not piece:
                break
            done += len(piece)
            digest.update(piece)
            file.write(piece)
            if say:
                say(done, total)
    if max(done, total) > MAX_BYTES:
        raise WeightsError(f"{answer.url} is larger than {MAX_BYTES // 2**30} GB: nothing was kept.")
    if done < total:
        raise WeightsError(f"{answer.url} broke off after {done:,} of {total:,} bytes: run the same command again.")
    return digest.hexdigest()


def _check_url(url: str) -> None:
    if urlsplit(url).scheme not in SCHEMES:
        raise ConfigError(f"{url} is not an https address: weights come from no other.")
