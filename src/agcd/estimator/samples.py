"""Samples as people have them: image paths or texts in any sequence, numbers in any table; all else is one sentence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from agcd.data.images import FOREIGN_SUFFIXES, IMAGE_SUFFIXES
from agcd.data.items import Item, image_dataset
from agcd.data.texts import from_texts
from agcd.errors import DataError
from agcd.types import Dataset

EXPECTED = "an array (n_samples, n_features), a list of image paths or a list of texts is expected"


def image_or_text_rows(X: Any) -> Dataset | None:
    """Every sample as a row, if ``X`` is a sequence of image paths or of texts; None if it should be numbers.

    Strings that all end like image files are paths; a sentence hardly does.
    """
    if isinstance(X, str | os.PathLike):
        raise DataError(f"X is the one path or text {str(X)!r:.60}: a list of them is expected.")
    items = _items(X)
    is_word = [isinstance(item, str | os.PathLike) for item in items]
    if not any(is_word):
        if len(items) and type(items[0]).__module__.startswith("PIL."):
            raise DataError("X holds pictures in memory: save them and give their paths.")
        return None
    if not all(is_word):
        other = items[is_word.index(False)]
        raise DataError(f"X mixes image paths or texts and {other!r:.60}: one kind for all samples is expected.")
    is_path = [_is_image_path(item) for item in items]
    if all(is_path):
        return image_rows([Path(path) for path in items])
    if 2 * sum(is_path) > len(items) or any(isinstance(item, os.PathLike) for item in items):
        other = items[is_path.index(False)]
        raise DataError(f"X mixes image paths and {str(other)!r:.60}, which is none: one kind for all is expected.")
    return from_texts(items, name="X")


def _is_image_path(item: str | os.PathLike[str]) -> bool:
    return Path(item).suffix.lower() in IMAGE_SUFFIXES | FOREIGN_SUFFIXES


def image_rows(paths: list[Path]) -> Dataset:
    """Every path as a row, in order; one that cannot be used is an error, because positions must stay."""
    items = [Item(path, str(path), None) for path in paths]
    dataset = image_dataset("X", items, otherwise="None of the given paths is a usable image")
    if dataset.quarantine:
        first = dataset.quarantine[0]
        raise DataError(f"{len(dataset.quarantine)} images cannot be used; the first is {first.path}: {first.reason}.")
    return dataset


def table(X: Any) -> Any:
    """``X`` as something of which scikit-learn can make an array of numbers."""
    if isinstance(X, list | tuple):
        return [_from_torch(item) for item in X] if X and hasattr(X[0], "detach") else X
    if issparse(X):
        raise DataError("X is sparse: a dense array is expected, as X.toarray() or TruncatedSVD give it.")
    if not hasattr(X, "__array__"):
        raise DataError(f"X is a {type(X).__name__}: {EXPECTED}.")
    if len(getattr(X, "shape", ())) > 2:
        raise DataError(f"X has the shape {tuple(X.shape)}: {EXPECTED}.")
    if getattr(X, "shape", ())[1:] == (1,) and hasattr(X, "iloc") and isinstance(X.iloc[0, 0], str | os.PathLike):
        raise DataError(f"X is a table with one column of text: give the column itself, X[{X.columns[0]!r}].")
    return _from_torch(X)


def _from_torch(X: Any) -> Any:
    """A tensor as an array, known without loading torch; anything else as it is."""
    return X.detach().cpu().float().numpy() if hasattr(X, "detach") else X


def _items(X: Any) -> Sequence[Any]:
    """The samples one by one, where they may be paths; nothing where they are numbers already."""
    if isinstance(X, list | tuple):
        return X
    if getattr(X, "ndim", 0) != 1 or not hasattr(X, "__array__") or hasattr(X, "detach"):
        return ()
    values = np.asarray(X)
    return values.tolist() if values.dtype.kind in "UO" else ()
