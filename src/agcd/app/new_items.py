"""What ``agcd predict`` names: pictures, texts or embeddings from elsewhere, and how a worker reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agcd.app.create import read_source_options
from agcd.app.embeddings import has_given_embeddings, width_of_embeddings
from agcd.app.project import Project
from agcd.config import Config
from agcd.data.embeddings import EMBEDDING_PATHS, read_embeddings
from agcd.data.folder import from_folder
from agcd.data.items import Item, image_dataset
from agcd.data.reading import SourceOptions, take_first
from agcd.data.text_items import TextItem, text_dataset
from agcd.errors import DataError
from agcd.features.backbones import load_backbone
from agcd.features.rows import EmbeddingRows, OnlineRows, RowFeatures
from agcd.features.text_encoders import load_encoder
from agcd.types import UNLABELLED, Dataset, FloatArray

New = Path | TextItem
"""A file or folder, or a text that was typed."""
Chunk = Sequence[Any]
Reader = Callable[[Chunk], RowFeatures]
_VECTORS = (".npy", ".npz", ".parquet")


@dataclass
class NewItems:
    """Usable items, and the places of the others with the reason."""

    reader: Callable[[Config], Reader]
    """Made once in every worker."""
    shown: dict[str, list[Any]]
    """The columns that tell which item a line is about, its path first."""
    items: Sequence[Any] = ()
    """What a reader takes of each item, JSON-like where other machines may read it."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    is_work: bool = True
    """Whether reading is worth sharing with other processes."""


def takes_texts(project: Project) -> bool:
    """Whether new items of a project are texts, which may be typed as well."""
    return bool(project.kind.file_ending) and not has_given_embeddings(project.store)


def find_new_items(project: Project, given: Sequence[New]) -> NewItems:
    """What is in the folders and files that were given: whatever the features of the project are made of."""
    if takes_texts(project):
        return _new_texts(project, given)
    places = [place for place in given if isinstance(place, Path)]
    return _new_embeddings(project, places) if has_given_embeddings(project.store) else _new_images(places)


# ------------------------------------------------------------------------------------------------------ pictures


class PictureReader:
    """Features of image files: new images are looked at once, so that theirs are not worth a place on the disk."""

    def __init__(self, config: Config) -> None:
        self._backbone = load_backbone(config.backbone, config.device)

    def __call__(self, chunk: Chunk) -> RowFeatures:
        return OnlineRows(_unlabelled(chunk), self._backbone)


def _unlabelled(chunk: Chunk) -> Dataset:
    """Paths and content keys as a data set."""
    n = len(chunk)
    paths, keys = tuple(Path(path) for path, _ in chunk), tuple(key for _, key in chunk)
    return Dataset("new images", (), np.full(n, UNLABELLED, dtype=np.int64), np.zeros(n, dtype=bool), keys, paths)


@dataclass
class _Images:
    """Usable images as path, content key and how the path is shown; the others with their reason."""

    images: list[tuple[Path, str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)

    def add(self, dataset: Dataset, shown: Callable[[Path], str], above: str = "") -> None:
        paths = dataset.paths or ()
        self.images += [(path, key, shown(path)) for path, key in zip(paths, dataset.keys, strict=True)]
        self.refused += [(above + refused.path, refused.reason) for refused in dataset.quarantine]


def _new_images(given: Sequence[Path]) -> NewItems:
    found = _images(given)
    files = [(str(path.absolute()), key) for path, key, _ in found.images]
    return NewItems(PictureReader, {"path": [shown for _, _, shown in found.images]}, files, found.refused)


def _images(given: Sequence[Path]) -> _Images:
    """The images in folders, then the files; those of a single folder are shown by their path below it, others as they
    were given."""
    found, folders = _Images(), [place for place in given if place.is_dir()]
    if len(given) == 1 and folders:
        found.add(from_folder(folders[0]), lambda path: path.relative_to(folders[0]).as_posix())
        return found
    for folder in folders:
        found.add(from_folder(folder), str, f"{folder}{os.sep}")
    items = [Item(place, str(place), None) for place in given if place not in folders]
    if items:
        found.add(image_dataset("new images", items, otherwise="None of the given files is a usable image"), str)
    return found


# --------------------------------------------------------------------------------------------------------- texts


class TextReader:
    """Embeddings of texts, by the encoder of the project."""

    def __init__(self, config: Config) -> None:
        self._encoder = load_encoder(config.backbone, config.device)

    def __call__(self, chunk: Chunk) -> RowFeatures:
        return EmbeddingRows(self._encoder(chunk), encoder=self._encoder.fingerprint)


def _new_texts(project: Project, given: Sequence[New]) -> NewItems:
    """The texts of every source in turn; those of a single one are shown by where they are in it."""
    options = SourceOptions(column=read_source_options(project.folder).column)
    found = NewItems(TextReader, {"path": [], "text": []})
    for place in given:
        if isinstance(place, Path):
            dataset = project.kind.read(place, options, take_first).dataset
            _add_texts(found, dataset, place if len(given) > 1 else None)
    typed = [item for item in given if isinstance(item, TextItem)]
    if typed:
        _add_texts(found, text_dataset("typed", typed, otherwise="No usable text was typed")[0], None)
    found.items = found.shown["text"]
    return found


def _add_texts(found: NewItems, dataset: Dataset, source: Path | None) -> None:
    found.shown["path"] += [_place(where, source) for where in dataset.where or ()]
    found.shown["text"] += dataset.texts or ()
    found.refused += [(_place(refused.path, source), refused.reason) for refused in dataset.quarantine]


def _place(where: str, source: Path | None) -> str:
    """Where a text is, told apart from those of other sources."""
    if source is None:
        return where
    return f"{source}{os.sep}{where}" if source.is_dir() else f"{source}:{where.removeprefix(f'{source.name}:')}"


# ---------------------------------------------------------------------------------------------------- embeddings


class VectorReader:
    """Embeddings as they are."""

    def __init__(self, config: Config) -> None:
        pass

    def __call__(self, chunk: Chunk) -> RowFeatures:
        return EmbeddingRows(np.asarray(chunk, np.float32))


def _new_embeddings(project: Project, given: Sequence[Path]) -> NewItems:
    width, paths, parts = width_of_embeddings(project.folder, project.store), [], []
    for place in given:
        values, ids = _vectors(project, place, width)
        names = ids or [f"row {row}" for row in range(len(values))]
        paths += names if len(given) == 1 else [f"{place}:{name}" for name in names]
        parts.append(values)
    return NewItems(VectorReader, {"path": paths}, list(np.concatenate(parts)), is_work=False)


def _vectors(project: Project, place: Path, width: int) -> tuple[FloatArray, list[str]]:
    if place.suffix.lower() not in _VECTORS:
        raise DataError(
            f"{place} cannot be named: this project stands on embeddings that were given with its "
            f"{project.kind.nouns}, so give those of the new ones, in {EMBEDDING_PATHS}."
        )
    values, ids = read_embeddings(place)
    if values.shape[1] != width:
        raise DataError(
            f"{place} has vectors of {values.shape[1]} numbers, those of the project have {width}: make them with the "
            "same model."
        )
    return values, ids
