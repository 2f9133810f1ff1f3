"""``agcd estimate``: what a project will cost, before anything is spent."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from agcd.cli.options import CacheOption, JsonOption, SetOption, tell, with_overrides
from agcd.io import default_cache


def estimate(
    data: Annotated[str | None, typer.Argument(help="A project, or data as for agcd bench run.")] = None,
    images: Annotated[int | None, typer.Option(help="Number of images, in place of data.", min=2)] = None,
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
    from agcd.lab.datasets import load_data

    cache_dir = cache or default_cache()
    load = partial(load_data, cache_dir=cache_dir)
    config, size, dim = with_labels(sized(data, images, classes, with_overrides({}, set_ or []), load), labels)
    machine = this_machine(config, cache_dir, dim=dim, renew=measure)
    as_set, others = costs.estimate(size, config, machine), costs.what_if(size, config, machine)
    facts = costs.to_json(as_set) | {"what_if": {words: costs.to_json(c) for words, c in others}}
    tell(as_json, facts, [costs.table([("as set", as_set), *others])])
