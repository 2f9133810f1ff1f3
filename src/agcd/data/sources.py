"""Where data comes from: a folder, a list of images, an archive or embeddings, each made into a ``Dataset``."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from agcd.data.archives import archive_name, unpack
from agcd.data.arrays import from_arrays, from_npz
from agcd.data.columns import is_text_name, standard_names
from agcd.data.folder import Walked, from_folder, read_folder, walk
from agcd.data.json_lists import FIFTYONE, read_json, read_json_lines
from agcd.data.layouts import Parts, split_word
from agcd.data.listing import Line, Listing, read_listing
from agcd.data.manifest import read_csv
from agcd.data.parquet import holds_pictures, read_parquet, unpack_pictures
from agcd.data.reading import DEFAULT_OPTIONS, Choose, Reading, SourceOptions, refuse_doubt, take_first
from agcd.data.text_tables import TABLES
from agcd.errors import DataError
from agcd.io import atomic_folder
from agcd.types import Dataset

__all__ = [
    "PATHS",
    "Reading",
    "SourceOptions",
    "from_arrays",
    "from_folder",
    "from_npz",
    "holds_texts",
    "is_source_name",
    "load_dataset",
    "read_source",
    "refuse_doubt",
    "take_first",
]

PATHS = "a folder, a list of images (.csv, .parquet, .jsonl, .json), a .zip or .tar archive, or an .npz file"
"""What is read, for sentences that refuse something else."""
LISTS: dict[str, Callable[[Path, SourceOptions], Listing]] = {
    ".csv": lambda path, options: read_csv(path),
    ".tsv": lambda path, options: read_csv(path),
    ".parquet": lambda path, options: read_parquet(path),
    ".jsonl": lambda path, options: read_json_lines(path),
    ".ndjson": lambda path, options: read_json_lines(path),
    ".json": read_json,
}
"""What reads a list of images, by its suffix."""
_METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
"""Lists that Hugging Face keeps beside the images, at the root or in each split."""
_LIST_DEPTH = 2
"""Names in the path of a list that is told of: beside the pictures, or in ``annotations/``."""
_log = logging.getLogger(__name__)


def load_dataset(path: Path | str) -> Dataset:
    """The data at ``path`` in the likeliest reading; of pictures only the headers are read, archives are refused."""
    reading = read_source(path, SourceOptions(look=False))
    for doubt in reading.doubts:
        _log.warning("%s", doubt)
    return reading.dataset


def is_source_name(path: Path) -> bool:
    """Whether a path looks like that of a file which is read, whatever is there."""
    return path.suffix.lower() in (*LISTS, ".npz") or archive_name(path) is not None


def holds_texts(path: Path) -> bool:
    """Whether texts are there rather than images: a table with a column of texts and none of paths, or a folder with
    ``.txt`` files and no image."""
    if path.is_dir():
        return not walk(path, DEFAULT_OPTIONS).files and bool(walk(path, DEFAULT_OPTIONS, {".txt"}, frozenset()).files)
    if path.suffix.lower() not in TABLES or not path.is_file():
        return False
    try:
        columns = _columns_of(path)
        return any(map(is_text_name, columns)) and "path" not in standard_names(path, columns, ())
    except DataError:  # whoever reads it says what is wrong
        return False


class _Columns(Exception):
    """Ends the reading of a table at its columns."""


def _columns_of(table: Path) -> Sequence[str]:
    def stop(_: Path, columns: Sequence[str]) -> list[str]:
        raise _Columns(*columns)

    try:
        TABLES[table.suffix.lower()](table, stop)
    except _Columns as found:
        return found.args
    return ()


def read_source(
    path: Path | str,
    options: SourceOptions = DEFAULT_OPTIONS,
    choose: Choose = take_first,
) -> Reading:
    """The data at ``path`` and what it was understood to be.

    Where several readings are possible ``choose`` decides, before any picture is looked at.
    """
    path = Path(path)
    if path.is_dir():
        return _read_directory(path, options, choose)
    if not path.exists():
        what = "manifest" if path.suffix.lower() in LISTS else "file" if is_source_name(path) else None
        raise DataError(f"There is {f'no {what}' if what else 'nothing'} at {path}: {PATHS} is expected.")
    if (name := archive_name(path)) is not None:
        return _unpacked(path, name, options, lambda folder: _read_archive(path, folder, options, choose))
    if path.suffix.lower() == ".npz":
        return Reading(from_npz(path), path.parent, (f"{path.name}: embeddings",), ())
    if path.suffix.lower() not in LISTS:
        raise DataError(f"{path} cannot be read as data: {PATHS} is expected.")
    if path.suffix.lower() == ".parquet" and holds_pictures(path):
        return _unpacked(
            path, path.stem, options, lambda folder: _read_shards(path, [(path, "")], folder, options, choose)
        )
    return read_listing(path, LISTS[path.suffix.lower()](path, options), options, choose)


# ---------------------------------------------------------------------------------------------- what is unpacked


def _unpacked(source: Path, name: str, options: SourceOptions, read: Callable[[Path], Reading]) -> Reading:
    """What ``read`` makes of ``source`` in a folder of its own, which goes again where that fails."""
    if options.unpack_to is None:
        raise DataError(f"{source} holds its pictures packed, which can be read into a project only: unpack it first.")
    folder = _free_name(options.unpack_to, name)
    try:
        return replace(read(folder), unpacked=folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _free_name(folder: Path, name: str) -> Path:
    clean = re.sub(r"[^\w.-]+", "_", name).strip(".") or "archive"
    names = (clean if number == 1 else f"{clean}-{number}" for number in range(1, 10_000))
    return next(folder / name for name in names if not (folder / name).exists())


def _read_archive(archive: Path, folder: Path, options: SourceOptions, choose: Choose) -> Reading:
    with atomic_folder(folder) as aside:
        unpack(archive, aside)
    return read_source(folder, options, choose)


def _read_shards(
    source: Path, shards: Sequence[tuple[Path, str]], folder: Path, options: SourceOptions, choose: Choose
) -> Reading:
    """Pictures inside Parquet files, each with the split that its name tells."""
    whole = Listing([])
    with atomic_folder(folder) as aside:
        for path, split in shards:
            n_before = len(whole.lines) + len(whole.quarantine)
            part = unpack_pictures(path, aside, start=n_before, split=split)
            whole.lines += part.lines
            whole.quarantine += part.quarantine
            whole.notes, whole.labels = part.notes, part.labels
    return read_listing(source, whole, options, choose, base=folder)


# ---------------------------------------------------------------------------------------------- folders with lists


def _read_directory(root: Path, options: SourceOptions, choose: Choose) -> Reading:
    """A folder by the list that lies in it, or by its own folders."""
    found = walk(root, options)
    if not found.files and found.lists:
        return _read_lists_alone(root, found, options, choose)
    notes: list[str] = []
    if options.class_level is None and (listing := _own_list(root, found, options, notes)) is not None:
        return read_listing(root, listing, options, choose, base=root)
    reading = read_folder(root, options, choose, found)
    if not reading.dataset.classes and not notes:
        notes = [_unread(parts) for parts in found.lists if len(parts) <= _LIST_DEPTH][:1]
    return replace(reading, tree=(*reading.tree, *notes))


def _unread(parts: Parts) -> str:
    """A word about a list that lies beside pictures without labels."""
    how = "with --labels" if parts[-1].endswith((".csv", ".tsv")) else "in place of the folder"
    return f"{'/'.join(parts)} was not read: give it {how} if it names classes"


def _read_lists_alone(root: Path, found: Walked, options: SourceOptions, choose: Choose) -> Reading:
    """A folder of Parquet files that hold pictures; other lists are pointed at."""
    shards = [parts for parts in found.lists if parts[-1].endswith(".parquet")]
    if shards and holds_pictures(root.joinpath(*shards[0])):
        named = [(root.joinpath(*parts), _split_of(parts)) for parts in shards]
        return _unpacked(root, root.resolve().name, options, lambda to: _read_shards(root, named, to, options, choose))
    raise DataError(
        f"{root} holds no pictures but {'/'.join(found.lists[0])!r}: give that file in place of the folder."
    )


def _split_of(parts: Parts) -> str:
    """The split in the path of a file: ``train-00000-of-00002.parquet``, ``test/0000.parquet``, else none."""
    words = [split_word(word) for word in (*parts[:-1], re.split(r"[-_.]\d|\.", parts[-1])[0])]
    return next((word for word in words if word), "")


def _own_list(root: Path, found: Walked, options: SourceOptions, notes: list[str]) -> Listing | None:
    """The lines of the lists that Hugging Face and FiftyOne keep beside the images, or None with a note why not."""
    whole = Listing([], quarantine=list(found.quarantine))
    for parts in found.lists:
        is_fiftyone = parts == (FIFTYONE,) and all(file[0] == "data" for file in found.files)
        if not is_fiftyone and parts[-1] not in _METADATA:
            continue
        try:
            listing = LISTS[Path(parts[-1]).suffix](root.joinpath(*parts), options)
        except DataError as error:
            notes.append(f"{'/'.join(parts)} was not read: {error}")
            continue
        if not any(line.label for line in listing.lines):
            notes.append(f"{'/'.join(parts)} names no classes and was not read")
            continue
        below = "".join(f"{name}/" for name in parts[:-1])
        lines = [replace(line, path=below + line.path, split=line.split or _split_of(parts)) for line in listing.lines]
        whole.lines += lines
        whole.quarantine += listing.quarantine
        whole.notes, whole.labels = [*listing.notes, f"{parts[-1]} is read in place of folder names"], listing.labels
    if not whole.lines:
        return None
    return _with_the_rest(whole, found.files)


def _with_the_rest(listing: Listing, files: Sequence[Parts]) -> Listing:
    """Pictures that lie in the folder but not in the list have no label."""
    named = {line.path.replace("\\", "/").removeprefix("./") for line in listing.lines}
    named |= {refused.path for refused in listing.quarantine}
    rest = [parts for parts in files if "/".join(parts) not in named]
    if rest:
        listing.notes.append(f"{len(rest)} more in the folder: no label")
    start = len(listing.lines)
    listing.lines += [Line(start + n, "/".join(parts), "", _split_of(parts)) for n, parts in enumerate(rest, start=1)]
    return listing
