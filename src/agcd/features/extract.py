"""Fill a feature store: decode in worker processes, run the frozen prefix here, write shard after shard.

Only what is missing is computed, so a killed run continues where it stopped. The views of one image go through
the prefix together and on one core, without other images or, if they are small, in passes of a fixed number of crops.
So the numbers depend neither on workers nor on cores nor on where a run was broken off; several passes at a time keep
all cores busy. On a GPU passes are large and of any length: there the last bits may depend on an image's neighbours.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from agcd.errors import StorageError
from agcd.features.backbones import Backbone, Run
from agcd.features.decoding import Decoded, decoded
from agcd.features.devices import in_memory
from agcd.features.store import SHARD_BYTES, FeatureStore, Half, Item
from agcd.features.views import Bad, ViewJob
from agcd.words import printable

log = logging.getLogger("agcd")

Progress = Callable[[int, int], None]
"""Called with the number of images done and their total."""
_HALF_MAX = float(np.finfo(np.float16).max)


def fill(
    store: FeatureStore,
    backbone: Backbone,
    wanted: Sequence[tuple[str, Path, int]],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> dict[str, str]:
    """Store the first n views of every (content key, path, n); return the unusable keys with their reasons."""
    bad = store.bad(key for key, _, _ in wanted)
    jobs = missing_jobs(store, wanted, bad)
    if jobs:
        n_items = sum(len(job.views) for job in jobs)
        check_space(store, n_items)
        with shown(progress, len(jobs), n_items) as advance:
            n_workers = workers if workers is not None else _default_workers(backbone.device)
            bad |= _run(store, backbone, jobs, n_workers, shard_bytes, advance)
    return bad


def missing_jobs(store: FeatureStore, wanted: Sequence[tuple[str, Path, int]], bad: dict[str, str]) -> list[ViewJob]:
    """One job per content that lacks views; rows of equal content share it."""
    paths: dict[str, Path] = {}
    n_views: defaultdict[str, int] = defaultdict(int)
    for key, path, n in wanted:
        paths.setdefault(key, path)
        n_views[key] = max(n_views[key], n)
    jobs = []
    for key, path in paths.items():
        lacking = store.missing((key, view) for view in range(n_views[key]))
        if lacking and key not in bad:
            jobs.append(ViewJob(str(path), key, tuple(view for _, view in lacking)))
    return jobs


def plan_shards(
    store: FeatureStore, jobs: Sequence[ViewJob], shard_bytes: int = SHARD_BYTES
) -> list[Sequence[ViewJob]]:
    """The jobs cut into shards before anything is computed, so that who computes them plays no part in the files."""
    shards, start, n_bytes = [], 0, 0
    for i, job in enumerate(jobs):
        n_bytes += len(job.views) * store.item_bytes
        if n_bytes >= shard_bytes or i == len(jobs) - 1:
            shards.append(jobs[start : i + 1])
            start, n_bytes = i + 1, 0
    return shards


def write_shard(store: FeatureStore, done: Iterable[tuple[ViewJob, Half | Bad]]) -> dict[str, str]:
    """Store the features of one shard's jobs; return the unusable keys with their reasons."""
    bad: dict[str, str] = {}
    items: list[Item] = []
    parts: list[Half] = []
    for job, values in done:
        if isinstance(values, Bad):
            bad[job.key] = values.reason
            log.warning("%s has no features: %s.", printable(job.path), values.reason)
            if values.lasting:
                store.mark_bad(job.key, values.reason)
        else:
            items += [(job.key, view) for view in job.views]
            parts.append(values)
    if items:
        store.add(items, np.concatenate(parts))
    return bad


def _run(
    store: FeatureStore,
    backbone: Backbone,
    jobs: Sequence[ViewJob],
    workers: int,
    shard_bytes: int,
    advance: Callable[[], None],
) -> dict[str, str]:
    bad: dict[str, str] = {}
    with closing(computed(backbone, decoded(jobs, backbone.view_spec, workers))) as pairs:
        for shard in plan_shards(store, jobs, shard_bytes):
            bad |= write_shard(store, _counted(islice(pairs, len(shard)), advance))
    return bad


def _counted(
    done: Iterable[tuple[ViewJob, Half | Bad]], advance: Callable[[], None]
) -> Iterator[tuple[ViewJob, Half | Bad]]:
    for pair in done:
        yield pair
        advance()


def computed(backbone: Backbone, pairs: Iterator[tuple[ViewJob, Decoded]]) -> Generator[tuple[ViewJob, Half | Bad]]:
    """The cached input of every job's crops, in order."""
    run, n_threads = backbone.opened(), torch.get_num_threads() if backbone.device.type == "cpu" else 1
    waiting: deque[Future[list[tuple[ViewJob, Half | Bad]]]] = deque()
    with single_core_threads(n_threads) as pool:
        for group in _grouped(pairs, backbone.crops_together):
            waiting.append(pool.submit(_one_group, run, group))
            if len(waiting) == 2 * n_threads:
                yield from waiting.popleft().result()
        for future in waiting:
            yield from future.result()


def _grouped(pairs: Iterable[tuple[ViewJob, Decoded]], n_crops: int) -> Iterator[list[tuple[ViewJob, Decoded]]]:
    """Neighbours with at most ``n_crops`` views together; an image that has more stands alone."""
    group: list[tuple[ViewJob, Decoded]] = []
    for job, crops in pairs:
        if group and sum(len(other.views) for other, _ in group) + len(job.views) > n_crops:
            yield group
            group = []
        group.append((job, crops))
    if group:
        yield group


def _one_group(run: Run, group: Sequence[tuple[ViewJob, Decoded]]) -> list[tuple[ViewJob, Half | Bad]]:
    good = [crops for _, crops in group if not isinstance(crops, Bad)]
    values = in_memory(run(np.concatenate(good))) if good else np.empty(0, np.float32)
    parts = iter(np.split(values, np.cumsum([len(crops) for crops in good])[:-1]))
    return [(job, crops if isinstance(crops, Bad) else to_half(next(parts))) for job, crops in group]


@contextmanager
def single_core_threads(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads in which torch uses one core each: no waiting for one another inside every layer."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(before)


def to_half(values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Half | Bad:
    """Float16 for the store; numbers too large for it are held at its limit, NaN is refused."""
    if not np.isfinite(values).all():
        return Bad("its features are not finite numbers", lasting=True)
    if np.abs(values).max(initial=0.0) > _HALF_MAX:
        log.warning('Features beyond ±%g were clipped; backbone.cache = "off" keeps them.', _HALF_MAX)
    return np.clip(values, -_HALF_MAX, _HALF_MAX).astype(np.float16)


def check_space(store: FeatureStore, n_items: int) -> None:
    need, free = n_items * store.item_bytes, shutil.disk_usage(store.folder).free
    log.info("features need %s, %s free at %s", _size(need), _size(free), store.folder)
    if need > free:
        raise StorageError(
            f"Features need {_size(need)} but {store.folder} has {_size(free)} free: free some space, lower "
            'backbone.views, or set backbone.cache = "off".'
        )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:.1f} MB"


def _default_workers(device: torch.device) -> int:
    """One process per two cores, as decoding takes a tenth to a fifth of the prefix's time; all but one for a GPU."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(8, cores // 2)) if device.type == "cpu" else max(1, min(32, cores - 1))


@contextmanager
def shown(progress: Progress | None, n_images: int, n_items: int) -> Iterator[Callable[[], None]]:
    """Count images for the caller's ``progress``, a bar on a terminal, or one log line before and after."""
    started = time.monotonic()
    log.info("computing features of %d images, %d views", n_images, n_items)
    if progress is not None:
        done = iter(range(1, n_images + 1))
        yield lambda: progress(next(done), n_images)
    elif _is_terminal():
        with _bar(n_images, n_items) as advance:
            yield advance
    else:
        yield lambda: None
    seconds = time.monotonic() - started
    speed = _speed(n_images / max(seconds, 1e-9), n_items / n_images)
    log.info("features of %d images in %.0f s, %s", n_images, seconds, speed)


def _speed(images_per_second: float, crops_per_image: float) -> str:
    return f"{images_per_second:.1f} images/s, {images_per_second * crops_per_image:.0f} crops/s"


def _is_terminal() -> bool:
    """Whether rich would draw on the error stream; the command line puts a stream before it that is no terminal."""
    from rich.console import Console

    return Console(stderr=True).is_terminal


@contextmanager
def _bar(n_images: int, n_items: int) -> Iterator[Callable[[], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Task as RichTask
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: RichTask) -> Text:
            return Text(_speed(task.speed, n_items / n_images) if task.speed else "")

    columns: Iterable[ProgressColumn] = (
        TextColumn("features"),
        BarColumn(),
        MofNCompleteColumn(),
        Speed(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=60) as bar:
        task = bar.add_task("features", total=n_images)
        yield lambda: bar.advance(task)
