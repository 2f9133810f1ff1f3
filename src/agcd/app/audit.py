"""What can be said of a round without ground truth: which classes changed their group, and what a blind audit finds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agcd.app.rounds import NO_SLOT, Atlas
from agcd.app.store.classes import Registry
from agcd.app.store.standing import Standing

_Z95 = 1.959964
"""Two-sided 95 % of a normal distribution."""


@dataclass(frozen=True)
class Audit:
    """What a blind sample says about the model of a round: right answers, and the 95 % interval of their share."""

    n: int
    n_right: int
    share: float
    low: float
    high: float


def audit_of(standing: Standing, atlas: Atlas) -> Audit | None:
    """How many of the blind answers the model of a round would have given; it never learned from them."""
    registry, right, n = standing.registry, 0, 0
    owners = [registry.resolve(c).id if c in registry.classes else None for c in atlas.facts["class_ids"]]
    for row, event in standing.answers.items():
        if event.is_audit and event.class_id is not None and atlas.top_slots[row, 0] != NO_SLOT:
            n += 1
            right += owners[atlas.top_slots[row, 0]] == registry.resolve(event.class_id).id
    if not n:
        return None
    low, high = wilson(right, n)
    return Audit(n, right, right / n, low, high)


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), which also holds for few samples and shares near 0 or 1."""
    share, square = right / n, _Z95**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = _Z95 / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def mapping_changes(registry: Registry, before: Atlas, after: Atlas) -> list[str]:
    """Which classes came, went or changed their group, in words."""
    then, now = ({c: slot for slot, c in enumerate(atlas.facts["class_ids"]) if c} for atlas in (before, after))
    sentences, n_kept = [], 0
    for class_id, slot in now.items():
        name = registry.classes[class_id].name if class_id in registry.classes else "a class taken back since"
        if class_id not in then:
            n_pictures = int(after.sizes[slot])
            pictures = "1 picture" if n_pictures == 1 else f"{n_pictures} pictures"
            sentences.append(f"{name} is new and owns group #{slot} ({pictures}).")
        elif then[class_id] != slot:
            sentences.append(f"{name} moved from group #{then[class_id]} to group #{slot}.")
        else:
            n_kept += 1
    gone = [registry.classes[c].name for c in then if c not in now and c in registry.classes]
    sentences += [f"{name} has no group of its own any more." for name in gone]
    return [*sentences, "1 class kept its group." if n_kept == 1 else f"{n_kept} classes kept their group."]
