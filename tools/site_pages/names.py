"""The reference of what has a name: strategies, trainers and the like, from the registries."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agcd.app.kinds import KINDS
from agcd.features.backbones import BACKBONES
from agcd.features.text_encoders import ENCODERS
from agcd.lab.datasets import NAMED, SOURCES
from agcd.metrics import METRICS
from agcd.plugins import Registry
from agcd.strategies import STRATEGIES, list_strategies, strategy_options
from agcd.tracking import TRACKERS
from agcd.training import REGISTRY, sections_read
from site_pages.tables import code, prose, table


def page() -> str:
    """The names of each kind, each with the first line of its documentation."""
    first = list_strategies()
    strategies = [
        (code(name), first[name], ", ".join(map(code, strategy_options(strategy))) or "–")
        for name, strategy in STRATEGIES.built_in.items()
    ]
    trainers = [
        (code(name), first_line(trainer), ", ".join(code(f"train.{one}") for one in sorted(sections_read(name))) or "–")
        for name, trainer in REGISTRY.built_in.items()
    ]
    lines = _head("Strategies", STRATEGIES) + table(("name", "what it does", "options"), strategies)
    lines += _head("Trainers", REGISTRY) + table(("name", "what it is", "sections of settings"), trainers)
    plain: dict[str, Registry[Any]] = {
        "Metrics": METRICS,
        "Trackers": TRACKERS,
        "Encoders of texts": ENCODERS,
        "Kinds of items": KINDS,
    }
    for title, registry in plain.items():
        lines += _head(title, registry) + table(
            ("name", "what it is"), ((code(name), first_line(one)) for name, one in registry.built_in.items())
        )
    lines += [
        *_head("Backbones", BACKBONES),
        f"{', '.join(map(code, BACKBONES.built_in))}, and every model of timm.",
        "",
    ]
    lines += _head("Sources", SOURCES) + table(
        ("named data set", "what it is"), ((code(name), first_line(one)) for name, one in NAMED.items())
    )
    return "\n".join(lines)


def _head(title: str, registry: Registry[Any]) -> list[str]:
    return [f"## {title}", "", f"Entry point group {code(registry.group)}.", ""]


def first_line(thing: Callable[..., Any]) -> str:
    """The first paragraph of a docstring."""
    return prose((inspect.getdoc(thing) or "").partition("\n\n")[0])
