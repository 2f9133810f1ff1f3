"""Settings and names in the forms that trackers take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agcd.io import digest_bytes


def flat(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings as ``section.key`` and value."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def file_name(name: str) -> str:
    """The name as a folder may be called on every system."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")


def short_id(name: str) -> str:
    """An id of sixteen letters and digits, equal for equal names."""
    return digest_bytes(name.encode())[-16:]
