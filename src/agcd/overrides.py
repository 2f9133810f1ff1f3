"""Settings as they are typed: ``section.key=value``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from agcd.errors import ConfigError


def with_overrides(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """``values`` with each ``section.key=value`` put in; the value is read as TOML, else taken as a string."""
    for text in overrides:
        where, equals, raw = text.partition("=")
        *sections, key = where.strip().split(".")
        if not equals or not key:
            raise ConfigError(f"Setting {text!r} is not of the form section.key=value.")
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            value = raw
        inner = values
        for section in sections:
            inner[section] = dict(inner.get(section, {}))
            inner = inner[section]
        inner[key] = value
    return values
