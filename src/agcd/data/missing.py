"""What a label that nobody gave looks like: the one rule for files, arrays and the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from agcd.types import UNLABELLED


def is_missing(label: Any) -> bool:
    """Whether nothing is said: None, NaN, pandas' NA and NaT, a masked entry, −1, and the texts "" and "-1".

    NumPy makes the text "-1" of a −1 among names, so it cannot be the name of a class.
    """
    if label is None or label is np.ma.masked or type(label).__name__ == "NAType":
        return True
    if isinstance(label, str):
        return label in ("", str(UNLABELLED))
    if isinstance(label, int | float | np.generic) or type(label).__name__ == "NaTType":
        return bool(label == UNLABELLED or label != label)
    return False
