"""``agcd check``: whether every file of a project is what was written, and what can be done where one is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import load_file

from agcd.app.create import CONFIG, HEALTH, PEOPLE, RECORDS, read_kind, read_settings
from agcd.app.embeddings import problems_of_embeddings
from agcd.app.image_paths import picture_path
from agcd.app.jobs import EXPORTED, Jobs, problem_of_export
from agcd.app.kinds import IMAGE
from agcd.app.labels import LabelView
from agcd.app.project import N_CLASSES
from agcd.app.round_files import problem_of_view
from agcd.app.row_log import read_contents
from agcd.app.store.events import LabelEvent
from agcd.app.store.seals import RESTORE, LostRecords, forget_last_event, wal_of
from agcd.app.store.store import Store
from agcd.errors import AgcdError, ConfigError, StorageError
from agcd.features.store import problem_of_shard
from agcd.io import leftovers, read_json, read_sealed, remove_leftovers
from agcd.run_files import CONFIG as RUN_CONFIG
from agcd.run_files import DONE, MODEL, PREDICTIONS, checked, damaged, read_checked, read_run_json
from agcd.training import settings_record
from agcd.types import BoolArray
from agcd.words import count


@dataclass(frozen=True)
class Finding:
    """Something that is not as it was written, and what helps."""

    path: Path
    problem: str
    remedy: str
    repair: Callable[[], None] | None = None
    is_damage: bool = True
    """False for what is worth a word and may be meant so."""

    def line(self, folder: Path) -> str:
        """One sentence; paths start at the project."""
        return f"{self.path.relative_to(folder)} {self.problem}: {self.remedy}"


def check_project(folder: Path, say: Callable[[str], None] = lambda line: None) -> list[Finding]:
    """Read every file of a project; ``say`` hears which part is looked at. Nothing is changed."""
    if not any((folder / name).exists() for name in (RECORDS, CONFIG, "runs")):
        raise ConfigError(f"There is no project at {folder}.")
    parts = {
        "records": _records,
        "settings and images": _settings,
        "rounds": _rounds,
        "what the page shows": _views,
        "features": _features,
        "exported files": _exports,
        "files of killed work": _leftovers,
    }
    found: list[Finding] = []
    for name, look in parts.items():
        say(f"checking {name}")
        found += look(folder)
    return found


def repair(folder: Path, findings: list[Finding]) -> None:
    """Do what can be done: drop damaged caches, which are made again, and move damaged rounds away."""
    if Jobs(folder).state().state == "running":
        raise ConfigError(f"{folder} is being trained: wait for it, or cancel it first.")
    for finding in findings:
        if finding.repair is not None:
            with suppress(FileNotFoundError):  # another repair has moved it away
                finding.repair()


# ---------------------------------------------------------------------------------------------------- the records


def _records(folder: Path) -> Iterator[Finding]:
    path = folder / RECORDS
    if not path.is_file():
        yield Finding(path, "is missing", RESTORE)
        return
    try:
        with Store(path) as store:
            yield from _content(store)
    except LostRecords as error:
        remedy = f"put {wal_of(path).name} back or {RESTORE}; repair goes on without them"
        lost = f"has lost its last {count(error.n_lost, 'record')}"
        yield Finding(path, lost, remedy, partial(forget_last_event, path))
    except StorageError as error:
        yield _as_told(path, error)


def _content(store: Store) -> Iterator[Finding]:
    wrong = [line for (line,) in store.select("PRAGMA integrity_check(3)") if line != "ok"]
    wrong += [str(line) for line in store.select("PRAGMA foreign_key_check")]
    if wrong:
        yield Finding(store.path, f"is damaged ({' '.join(wrong[0].split())})", RESTORE)
        return
    try:
        keys, _, is_test = store.rows()
        read_contents(store, read_kind(store.path.parent), keys)
        store.runs()
        _check_fold(is_test, store.events())
    except StorageError as error:
        yield _as_told(store.path, error)
    except Exception as error:  # whatever a fold of damaged events runs into
        yield Finding(store.path, f"is damaged (its events contradict each other: {error!r})", RESTORE)


def _check_fold(is_test: BoolArray, events: Sequence[LabelEvent]) -> None:
    """The events must make sense one after the other, and have told of every row."""
    folded = LabelView.empty(is_test, events).after(events)
    if not np.array_equal(folded.is_test, is_test):
        raise ValueError(f"{folded.n_rows} rows of {len(is_test)}")


def _as_told(path: Path, error: AgcdError) -> Finding:
    """A sentence about ``path`` as a finding: its remedy stands after the last colon."""
    problem, _, remedy = str(error).removeprefix(f"{path} ").rstrip(".").rpartition(": ")
    return Finding(path, problem or str(error), remedy or RESTORE)


# --------------------------------------------------------------------------------------------- settings and images


def _settings(folder: Path) -> Iterator[Finding]:
    try:
        images = read_settings(folder / CONFIG)[1]
    except AgcdError as error:
        yield Finding(folder / CONFIG, f"cannot be used ({error})", f"mend it or {RESTORE}")
        return
    yield from _given(folder)
    if read_kind(folder).name == IMAGE:  # texts and records are in the project itself
        yield from _images(folder, images)
    estimate, people, health = (folder / name for name in (N_CLASSES, PEOPLE, HEALTH))
    if _is_damaged(estimate):
        remedy = "the number of classes is that of the first round, or estimated again"
        yield Finding(estimate, "is damaged", remedy, estimate.unlink)
    if _is_damaged(people):
        yield Finding(people, "is damaged", f"mend it, or delete it and add everybody anew, or {RESTORE}")
    if _is_damaged(health, read_json):
        yield Finding(health, "is damaged", "it only informs and can go", health.unlink)


def _is_damaged(path: Path, read: Callable[[Path], object] = read_sealed) -> bool:
    """Whether a JSON file is there and cannot be read."""
    try:
        read(path)
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    return False


def _given(folder: Path) -> Iterator[Finding]:
    """Embeddings that came with the items."""
    try:
        with Store(folder / RECORDS) as store:
            for path, problem in problems_of_embeddings(folder, store):
                yield _as_told(path, problem)
    except AgcdError:
        return  # told among the records


def _images(folder: Path, images: Path) -> Iterator[Finding]:
    if not images.is_dir():
        yield Finding(folder / CONFIG, f"says that the images are in {images}, which is not there", "mend it")
        return
    try:
        with Store(folder / RECORDS) as store:
            (_, paths, is_test), events = store.rows(), store.events()
    except AgcdError:
        return  # told among the records
    rows = LabelView.empty(is_test, events).after(events).present_rows.tolist()
    gone = [paths[row] for row in rows if not picture_path(paths[row], images, folder).is_file()]
    if gone:
        shown = f"{gone[0]!r}" + (f" and {len(gone) - 1} more" if len(gone) > 1 else "")
        yield Finding(folder / CONFIG, f"names a folder that lacks {shown}", "put them back", is_damage=False)


# --------------------------------------------------------------------------------------------------------- rounds


def _rounds(folder: Path) -> Iterator[Finding]:
    for run in sorted(path for path in folder.glob("runs/*") if path.is_dir()):
        try:
            if (run / DONE).exists():
                _check_finished(run)
            elif (run / RUN_CONFIG).exists():
                read_run_json(run, RUN_CONFIG)
        except AgcdError as error:
            path = next((path for path in sorted(run.iterdir()) if str(error).startswith(f"{path} ")), run)
            problem = str(error).removeprefix(f"{path} ").partition(":")[0]
            remedy = f"repair moves {run.name} away, and agcd train makes that round again as it was"
            yield Finding(path, problem, remedy, partial(_move_away, folder, run))
    yield from _queries(folder)
    yield from _lost_rounds(folder)
    yield from _changed_settings(folder)


def _queries(folder: Path) -> Iterator[Finding]:
    for path in sorted(folder.glob("runs/*/query.json")):
        if _is_damaged(path):
            yield Finding(path, "is damaged", "the questions are in the records as well", path.unlink)


def _check_finished(run: Path) -> None:
    for name in read_run_json(run, DONE).get("digests", {}):
        checked(run, name)
    model, predictions = checked(run, MODEL), checked(run, PREDICTIONS)
    try:
        arrays = list(load_file(model).values())
        arrays.append(pq.read_table(predictions, columns=["probability"])["probability"].to_numpy())
    except Exception as error:  # rounds of version 0.2 have no digests, and each library its own errors
        raise StorageError(f"{run} is damaged: {error}.") from None
    if not all(np.isfinite(values).all() for values in arrays):
        raise damaged(model, "holds numbers that are not finite")


def _lost_rounds(folder: Path) -> Iterator[Finding]:
    """Rounds that were begun before a later finished one and are no longer there."""
    try:
        with Store(folder / RECORDS) as store:
            begun = store.runs()
    except AgcdError:
        return
    done = [number for number in begun if (folder / "runs" / f"{number:03d}" / DONE).exists()]
    for number in range(max(done, default=-1)):
        if number not in done:
            path = folder / "runs" / f"{number:03d}"
            yield Finding(path, "is missing", "agcd train makes that round again as it was")


def _changed_settings(folder: Path) -> Iterator[Finding]:
    """Settings that differ from those of the last finished round: meant so, or damaged."""
    runs = sorted(path.parent for path in folder.glob(f"runs/*/{DONE}"))
    try:
        now = _flat(settings_record(read_settings(folder / CONFIG)[0]))
        then = _flat(read_checked(runs[-1], RUN_CONFIG)["settings"]) if runs else now
    except AgcdError:
        return
    changed = [name for name in sorted(now) if name in then and now[name] != then[name]]
    if changed:
        number = int(runs[-1].name)
        problem = f"and the defaults of this version differ from what round {number} was trained with"
        remedy = f"set {', '.join(changed)} back if that was not meant"
        yield Finding(folder / CONFIG, problem, remedy, is_damage=False)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by their full names, as in ``train.lr``."""
    sections = {name: value for name, value in settings.items() if isinstance(value, dict)}
    plain = {name: value for name, value in settings.items() if name not in sections}
    return plain | {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}


def _move_away(folder: Path, run: Path) -> None:
    aside = folder / "damaged" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{run.name}"
    aside.parent.mkdir(exist_ok=True)
    run.replace(aside)


# --------------------------------------------------------------------------------------------------------- caches


def _views(folder: Path) -> Iterator[Finding]:
    for view in sorted(path for path in folder.glob("cache/rounds/*") if path.is_dir()):
        problem = problem_of_view(view)
        if problem:
            remedy = "agcd serve and agcd train make it again"
            yield Finding(view, f"is damaged ({problem})", remedy, partial(shutil.rmtree, view))


def _features(folder: Path) -> Iterator[Finding]:
    for shard in sorted(folder.glob("cache/features/*/*.npy")):
        problem = problem_of_shard(shard)
        if problem:
            yield Finding(shard, f"is damaged ({problem})", "these features are computed again", shard.unlink)


def _exports(folder: Path) -> Iterator[Finding]:
    for made in sorted(folder.glob("cache/export/*")):
        names = sorted(path.name for path in made.iterdir() if path.is_file() and path.name != EXPORTED)
        problems = [problem for name in names if (problem := problem_of_export(made, name))]
        if problems:
            yield Finding(made, f"is damaged ({problems[0]})", "the page builds it again", partial(shutil.rmtree, made))


def _leftovers(folder: Path) -> Iterator[Finding]:
    for inside in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        if leftovers(inside):
            remedy, clean = "nobody needs them", partial(remove_leftovers, inside)
            yield Finding(inside, "holds files of work that was killed", remedy, clean, is_damage=False)
