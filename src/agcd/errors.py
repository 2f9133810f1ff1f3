"""Errors that a user can cause and mend: one sentence each, shown without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.util import find_spec


class AgcdError(Exception):
    """A user's mistake or a fault of the surroundings; the message is the whole story."""


class DataError(AgcdError, ValueError):
    """Missing, empty or contradictory input data."""


class ConfigError(AgcdError, ValueError):
    """A setting that does not exist or is out of its range."""


class WeightsError(AgcdError):
    """Weights that are missing, damaged or do not fit the model."""


class StorageError(AgcdError):
    """The disk is full or cannot be written."""


class TrainingError(AgcdError):
    """Numbers that are no longer finite: a run that cannot become a round."""


class EngineError(AgcdError):
    """Processes that worked for this one have ended before their work did."""


class InstallError(AgcdError):
    """Something that only the whole installation can do."""


LEFT_OUT = frozenset({"torch", "torchvision", "timm", "sklearn", "matplotlib", "pyarrow", "safetensors"})
"""What an installation for labelling alone is without (docs/install.md)."""
_BESIDE_TORCH = LEFT_OUT - {"torch", "matplotlib", "pyarrow"}


def not_installed(what: str, module: str | None) -> InstallError | None:
    """The sentence for ``what`` that needs a module which is left out; None where the program is at fault."""
    top = (module or "").partition(".")[0]
    if top in _BESIDE_TORCH and find_spec("torch") is None:  # whichever happened to be imported first
        top = "torch"
    return (
        InstallError(f"{what} needs {top}, which is not installed here: pip install agcd.") if top in LEFT_OUT else None
    )


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """The tail of an error sentence: a guess at the word that was meant, and all that are allowed."""
    options = sorted(allowed)
    close = difflib.get_close_matches(word, options, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return f"{guess} Allowed: {', '.join(options)}."
