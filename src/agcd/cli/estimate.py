"""``agcd estimate``: what a project will cost, before anything is spent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from agcd.cli.options import CacheOption, JsonOption, SetOption, tell, with_overrides
from agcd.io import default_cache


def estimate(
    data: Annotated[str | None, typer.Argument(help="A project, or data as for agcd bench run.")] = None,
    images: Annotated[int | None, typer.Option(help="Number of images, in place of data.", min=2)] = None,
    texts: Annotated[int | None, typer.Option(help="Number of texts, in place of data.", min=2)] = None,
    classes: Annotated[int | None, typer.Option(help="Classes to look for, known and unknown together.", min=2)] = None,
    labels: Annotated[int | None, typer.Option(help="Labels at the start; default those of the data.", min=0)] = None,
    set_: SetOption = None,
    measure: Annotated[bool, typer.Option("--measure", help="Measure this machine again.")] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a project will take: disk, memory, and time for features, training, a round and a query."""
    from agcd.app.sizing import sized, with_labels
    from agcd.engine import costs
    from agcd.engine.machine import this_machine
    from agcd.errors import ConfigError
    from agcd.lab.datasets import load_data

    if images is not None and texts is not None:
        raise ConfigError("Give either --images or --texts, not both.")

    cache_dir = cache or default_cache()
    load = partial(load_data, cache_dir=cache_dir)
    n_rows = images if texts is None else texts
    config, size, dim = with_labels(sized(data, n_rows, classes, with_overrides({}, set_ or []), load), labels)
    if texts is not None:
        size = replace(size, n_chars=costs.TYPICAL_CHARS)
    machine = this_machine(config, cache_dir, dim=dim, has_texts=size.n_chars > 0, renew=measure)
    as_set, others = costs.estimate(size, config, machine), costs.what_if(size, config, machine)
    facts = costs.to_json(as_set) | {"what_if": {words: costs.to_json(c) for words, c in others}}
    facts |= {"device": machine.device}
    lines = [costs.table([("as set", as_set), *others]), f"measured on: {machine.device}"]
    if (per_second := costs.texts_per_second(size, machine)) is not None:
        facts |= {"texts_per_s": per_second}
        lines.append(f"measured here: {per_second:,.0f} texts of {size.n_chars:.0f} characters a second")
    tell(as_json, facts, lines)
