"""``agcd estimate``: what a project will cost, before anything is spent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from agcd.cli.options import CacheOption, JsonOption, SetOption, tell, with_overrides
from agcd.io import default_cache

if TYPE_CHECKING:
    from agcd.config import Config
    from agcd.engine.costs import Size


def estimate(
    data: Annotated[str | None, typer.Argument(help="A project, or data as for agcd bench run.")] = None,
    images: Annotated[int | None, typer.Option(help="Number of images, in place of data.", min=2)] = None,
    texts: Annotated[int | None, typer.Option(help="Number of texts, in place of data.", min=2)] = None,
    classes: Annotated[int | None, typer.Option(help="Classes to look for, known and unknown together.", min=2)] = None,
    labels: Annotated[int | None, typer.Option(help="Labels at the start; default those of the data.", min=0)] = None,
    set_: SetOption = None,
    gpu: Annotated[str | None, typer.Option(help="What a GPU would take, by arithmetic: a100 or a100-80gb.")] = None,
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
    if gpu is not None:
        _tell_of_gpu(gpu, config, size, is_images=dim is None and size.n_chars == 0, as_json=as_json)
        return
    machine = this_machine(config, cache_dir, dim=dim, has_texts=size.n_chars > 0, renew=measure)
    as_set, others = costs.estimate(size, config, machine), costs.what_if(size, config, machine)
    facts = costs.to_json(as_set) | {"what_if": {words: costs.to_json(c) for words, c in others}}
    facts |= {"device": machine.device}
    lines = [costs.table([("as set", as_set), *others]), f"measured on: {machine.device}"]
    if (per_second := costs.texts_per_second(size, machine)) is not None:
        facts |= {"texts_per_s": per_second}
        lines.append(f"measured here: {per_second:,.0f} texts of {size.n_chars:.0f} characters a second")
    tell(as_json, facts, lines)


def _tell_of_gpu(gpu: str, config: Config, size: Size, *, is_images: bool, as_json: bool) -> None:
    """The costs with a GPU, and what they rest on."""
    from agcd.engine import costs
    from agcd.engine.gpu import assumptions, machine_with
    from agcd.errors import ConfigError

    if not is_images:
        raise ConfigError("--gpu counts the work of a network of images: leave it out for texts and embeddings.")
    found = costs.estimate(size, config, machine_with(gpu, config, size))
    said = assumptions(gpu, config)
    tell(as_json, costs.to_json(found) | {"assumptions": said}, [costs.table([(gpu, found)]), said])
