"""The crops of many files, in order, from decoding processes; free of torch, as these import it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agcd.data.decoding import Decoder, Task, in_order
from agcd.data.images import ImageError
from agcd.features.views import Bad, ViewJob, ViewSpec, load_views

Decoded = NDArray[np.uint8] | Bad


def decoded_now(decoder: Decoder, job: ViewJob, spec: ViewSpec) -> Decoded:
    """The crops of one job."""
    try:
        crops: Decoded = decoder(Path(job.path), spec.resize, load_views, job, spec)
        return crops
    except ImageError as error:  # its decoder died
        return Bad(error.reason, lasting=False)


def decoded(jobs: Sequence[ViewJob], spec: ViewSpec, workers: int) -> Iterator[tuple[ViewJob, Decoded]]:
    """Every job with its crops, in the order given; ``workers`` 0 decodes in this process."""
    if workers == 0:
        yield from ((job, load_views(job, spec)) for job in jobs)
        return
    tasks = [Task(Path(job.path), spec.resize, load_views, (job, spec)) for job in jobs]
    yield from zip(jobs, in_order(tasks, workers, Bad("its decoder died twice", lasting=False)), strict=True)
