"""Pictures for the page, by row number only: decoded by the one decoder, made small and encoded anew.

Large ones are decoded in limited processes: one that kills its decoder is a picture gone, and the others go on.

A file is shown only while its content is what was scanned, so neither a changed file nor a swapped link ever leaves
this machine. What was made once is kept under the name of its content.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from agcd.data.decoding import Decoder
from agcd.data.images import ImageError, read_file, scanned_jpeg
from agcd.errors import DataError, StorageError
from agcd.io import atomic_write

SIZES = (96, 160, 320, 1024)
MAX_DECODINGS = 4
"""At once: each may take some ten megabytes here, and they would only wait for a core."""
MAX_THREADS = 8
"""Waiting for pictures at once, so that a page full of them leaves threads for answers."""
N_LOCKS = 64
KEY = re.compile("b2-[0-9a-f]{32}")
ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"description": "No such row or size."},
    410: {"description": "The file is gone, damaged or not what was scanned."},
}


class NoSuchPicture(DataError):
    """A row or a size that there is not."""


class PictureGone(DataError):
    """A picture that was there when the project was made and cannot be shown now."""


class PictureRows(Protocol):
    """What a project knows of its pictures; rows may be added."""

    @property
    def keys(self) -> Sequence[str]:
        """The key of each row's content."""

    def picture_file(self, row: int) -> tuple[Path, str] | None:
        """Where the picture of ``row`` lies and the key of its content; None where it has none."""


class Pictures:
    """The pictures of a project; any thread may ask. ``cache`` may be deleted at any time."""

    def __init__(self, rows: PictureRows, cache: Path) -> None:
        self._rows, self._cache = rows, cache
        self._decoding, self._decoder = threading.Semaphore(MAX_DECODINGS), Decoder()
        self._locks = tuple(threading.Lock() for _ in range(N_LOCKS))

    def jpeg(self, row: int, size: int) -> bytes:
        """The picture of ``row``, fitted into ``size`` × ``size`` pixels, never enlarged."""
        key = self.key(row, size)
        kept = self._cache / str(size) / key[3:5] / f"{key}.jpg"
        with self._locks[int(key[3:], 16) % N_LOCKS]:  # whoever asks for the same picture waits for it
            found = _kept_jpeg(kept)
            if found is not None:
                return found
            with self._decoding:
                made = self._made(row, key, size)
            with suppress(StorageError), atomic_write(kept) as aside:  # a full disk must not cost the picture
                aside.write_bytes(made)
        return made

    def key(self, row: int, size: int = SIZES[0]) -> str:
        """The name of the content of ``row``, if there is such a row and such a size."""
        self._key_of_row(row)
        if size not in SIZES:
            raise NoSuchPicture(f"There are no pictures of size {size}; allowed: {', '.join(map(str, SIZES))}.")
        found = self._rows.picture_file(row)
        if found is None:
            raise NoSuchPicture(f"Row {row} has no picture.")
        key = found[1]
        if not KEY.fullmatch(key):  # it becomes a file name, and the project may be a stranger's
            raise PictureGone(f"Picture {row} cannot be shown: it was scanned by another rule.")
        return key

    def version(self, row: int) -> str:
        """Changes with the content of ``row``: what browsers may keep is asked for with it."""
        return self._key_of_row(row)[3:13]

    def _key_of_row(self, row: int) -> str:
        keys = self._rows.keys
        if not 0 <= row < len(keys):
            raise NoSuchPicture(f"There is no picture {row}: the project has {len(keys)}, numbered from 0.")
        return keys[row]

    def _made(self, row: int, key: str, size: int) -> bytes:
        try:
            found = self._rows.picture_file(row)
            assert found is not None
            path = found[0]
            jpeg: bytes = self._decoder(path, size, scanned_jpeg, path, key, size)
            return jpeg
        except ImageError as error:
            raise PictureGone(f"Picture {row} cannot be shown: {error.reason}.") from None


def routes(pictures: Pictures) -> APIRouter:
    """GET and HEAD ``/image/{row}?size=160&v=…``."""
    router = APIRouter()
    threads = anyio.CapacityLimiter(MAX_THREADS)

    @router.head("/image/{row}", include_in_schema=False)
    @router.get("/image/{row}", response_class=JpegResponse, responses=ERRORS, tags=["pictures"])
    async def image(request: Request, row: str, size: str = "160", v: str = "") -> Response:
        """One picture as a JPEG; browsers may keep it for good where ``v`` is the version of its content."""
        try:
            number, pixels = _number(row), _number(size)
            headers = _headers(pictures, number, pixels, v)
            if headers["ETag"] in _known_tags(request):
                return Response(status_code=304, headers=headers)
            jpeg = await anyio.to_thread.run_sync(pictures.jpeg, number, pixels, limiter=threads)
        except NoSuchPicture as error:
            return JSONResponse({"error": str(error)}, 404)
        except PictureGone as error:
            return JSONResponse({"error": str(error)}, 410)
        return JpegResponse(jpeg, headers=headers)

    return router


class JpegResponse(Response):
    """A picture; a Range header is not heeded."""

    media_type = "image/jpeg"


def _headers(pictures: Pictures, row: int, size: int, version: str) -> dict[str, str]:
    is_lasting = version == pictures.version(row)
    return {
        "Cache-Control": "private, max-age=31536000, immutable" if is_lasting else "private, no-cache",
        "ETag": f'"{pictures.key(row, size)}-{size}"',
        "Content-Disposition": f'inline; filename="{row}.jpg"',
    }


def _known_tags(request: Request) -> set[str]:
    """What the browser has already; ``W/`` is put there by proxies."""
    listed = ",".join(request.headers.getlist("if-none-match"))
    return {tag.strip().removeprefix("W/") for tag in listed.split(",")}


def _number(text: str) -> int:
    """Plain digits only: ``int`` would also take spaces, signs and the digits of other scripts."""
    if not re.fullmatch("[0-9]{1,12}", text):
        raise NoSuchPicture(f"There is no picture {text[:40]!r}: rows and sizes are numbers.")
    return int(text)


def _kept_jpeg(path: Path) -> bytes | None:
    """What was made before; None if it is not there or not whole."""
    try:
        content = read_file(path)
    except ImageError:
        return None
    return content if content.startswith(b"\xff\xd8") and content.endswith(b"\xff\xd9") else None
