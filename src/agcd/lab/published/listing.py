"""What a reader returns, and the few steps that all readers share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agcd.data.images import IMAGE_SUFFIXES
from agcd.data.items import Item
from agcd.errors import DataError


@dataclass(frozen=True)
class Listing:
    """The images of a data set in its own order, its classes in the order of their ids; no image was opened."""

    classes: tuple[str, ...]
    items: tuple[Item, ...]


class MissingPieces(DataError):
    """A copy that lacks files or folders; ``pieces`` are their names."""

    def __init__(self, place: Path, pieces: Sequence[str]) -> None:
        super().__init__(f"{place} lacks {', '.join(pieces)}.")
        self.place, self.pieces = place, tuple(pieces)


def find_root(path: Path, pieces: Sequence[str], inner: Sequence[str] = ()) -> Path:
    """The first of ``path`` and its ``inner`` folders that holds all ``pieces``; else say what the closest lacks."""
    lacks = {place: [p for p in pieces if not (place / p).exists()] for place in (path, *(path / i for i in inner))}
    best = min(lacks, key=lambda place: len(lacks[place]))
    if lacks[best]:
        raise MissingPieces(best, lacks[best])
    return best


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The number and the stripped text of every line that is not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def read_pairs(path: Path) -> dict[str, str]:
    """Lines of "<key> <rest>" as a table in the order of the file."""
    pairs: dict[str, str] = {}
    for number, line in read_lines(path):
        key, _, rest = line.partition(" ")
        if not rest.strip() or key in pairs:
            raise DataError(f"{path}, line {number}: {line[:60]!r}; a new id, a space and a value are expected.")
        pairs[key] = rest.strip()
    return pairs


def look_up(pairs: dict[str, str], key: str, path: Path) -> str:
    """The value of ``key`` in a table read from ``path``."""
    if key not in pairs:
        raise DataError(f"{path} has no line for {key!r}, which another list names.")
    return pairs[key]


def listed_path(root: Path, relative: str, source: Path) -> Path:
    """``root / relative``; a list is somebody else's text, so a path that climbs out of ``root`` is refused."""
    pure = PurePosixPath(relative)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\\" in relative or "\0" in relative:
        raise DataError(f"{source} lists {relative!r}; a path inside {root} is expected.")
    return root.joinpath(*pure.parts)


def folder_names(folder: Path) -> list[str]:
    """The names of the folders in ``folder``, sorted as text; links to folders count, since the copy is the user's."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}.") from None


def folder_items(root: Path, part: str, folder: str, label: str, *, is_test: bool) -> list[Item]:
    """The images in ``root/part/folder``, sorted by name."""
    try:
        names = sorted(entry.name for entry in (root / part / folder).iterdir())
    except OSError as error:
        raise DataError(f"{root / part / folder} cannot be read: {error.strerror or error}.") from None
    images = [name for name in names if not name.startswith(".") and Path(name).suffix.lower() in IMAGE_SUFFIXES]
    return [Item(root / part / folder / name, f"{part}/{folder}/{name}", label, is_test) for name in images]
