"""The pickles of CIFAR's python version, read without ever running what a pickle asks for.

A pickle may name any function and have it called. This reader knows three names, those of a NumPy array, and gives
each a stand-in that only stores what it is handed; every other name is refused. Not even NumPy's own code sees the
pickle, only the bytes of its arrays.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agcd.errors import DataError


class _Dtype:
    """Stands in for ``numpy.dtype``."""

    def __init__(self, code: Any = None, *rest: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        """Byte order and fields do not matter to single bytes, the only type that is accepted."""


class _Array:
    """Stands in for ``numpy.ndarray`` and for the function that makes an empty one."""

    def __init__(self, *ignored: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def values(self) -> NDArray[np.uint8]:
        """The array that was stored: bytes only, in C order."""
        _, shape, dtype, is_fortran, raw = self.state
        if not isinstance(dtype, _Dtype) or dtype.code != "u1" or is_fortran:
            raise ValueError("an array of another type than uint8")
        content = raw.encode("latin1") if isinstance(raw, str) else raw  # Python 2 wrote bytes as text
        return np.frombuffer(content, dtype=np.uint8).reshape(shape)


_STAND_INS = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise _Refused(f"it asks for {module}.{name}, which a list of images does not need")
        return _STAND_INS[module, name]


class _Refused(Exception):
    """A pickle that asks for more than an array."""


def read_pickled_table(path: Path) -> dict[str, Any]:
    """The pickled dictionary in ``path``: text, numbers, lists, and arrays of bytes as NumPy arrays."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        table = _Unpickler(io.BytesIO(content), encoding="latin1").load()
        if not isinstance(table, dict):
            raise ValueError("no dictionary")
        return {str(key): value.values() if isinstance(value, _Array) else value for key, value in table.items()}
    except _Refused as error:
        raise DataError(f"{path} is refused: {error}.") from None
    except Exception as error:  # a damaged pickle raises nearly anything
        raise DataError(f"{path} is not a batch of CIFAR ({type(error).__name__}: {error}).") from None
