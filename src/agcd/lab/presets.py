"""What the paper sets for each of its data sets, laid under the user's own settings."""

from __future__ import annotations

from typing import Any

from agcd.config import merged
from agcd.lab.published import parse_spec


def with_preset(data: str, settings: dict[str, Any]) -> dict[str, Any]:
    """``settings`` with λ_e, rounds and budget of the paper where ``data`` is one of its sets and nothing was said."""
    known = parse_spec(data)
    if known is None:
        return settings
    facts = known[0]
    preset = {
        "train": {"entropy_weight": facts.entropy_weight},
        "query": {"rounds": facts.rounds, "budget": facts.budget},
    }
    return merged(preset, settings)
