"""An archive unpacked once into the cache."""

from __future__ import annotations

from pathlib import Path

from agcd.data.archives import unpack
from agcd.errors import DataError
from agcd.io import atomic_folder, digest


def cache_folder(cache_dir: Path, name: str, sources: list[Path]) -> Path:
    """Where what is made from ``sources`` is kept; a source of another size or date gets another folder."""
    try:
        facts = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in sources]
    except OSError as error:
        raise DataError(f"{sources[0].parent} cannot be read: {error.strerror or error}.") from None
    return cache_dir / "published" / f"{name}-{digest(facts).removeprefix('b2-')[:16]}"


def unpacked(archive: Path, cache_dir: Path) -> Path:
    """The folder into which ``archive`` was unpacked, now or before."""
    folder = cache_folder(cache_dir, "unpacked", [archive])
    if folder.exists():
        return folder
    with atomic_folder(folder) as aside:
        unpack(archive, aside)
    return folder
