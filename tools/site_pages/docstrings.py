"""Our docstrings list parameters as ``name : what it is``; a reader of NumPy's style would take that for a type."""

from __future__ import annotations

import re
from typing import Any

import griffe

_NAMED = re.compile(r"^(\w+) : (.+)$", re.MULTILINE)


class Words(griffe.Extension):
    """Moves what is said of a parameter below its name, where it is read as words; types are in the signature."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and re.search(r"^-{4,}$", obj.docstring.value, re.MULTILINE):
            obj.docstring.value = _NAMED.sub(r"\1\n    \2", obj.docstring.value)
