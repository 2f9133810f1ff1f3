"""Run by a test on a small disk of its own: fills it at random points of the work, makes room, and goes on.

    python -m support.full_disk FOLDER SEED N

``FOLDER`` is a file system that may be filled. Every point must end well or with one sentence, lose nothing, and go on
once there is room.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from agcd.app.answers import Answer, write_answers
from agcd.app.backup import write_backup
from agcd.app.check import check_project
from agcd.app.export.files import export_all
from agcd.app.model import row_features, train
from agcd.app.project import Project
from agcd.errors import AgcdError
from support.projects import SETTINGS, answer_all, make_project, predictions

Work = Callable[[Path, Path], None]


def init(project: Path, images: Path) -> None:
    Project.create(project, images, n_classes=5, settings=SETTINGS).close()


def extract(project: Path, images: Path) -> None:
    with Project.open(project) as opened:
        row_features(opened)


def training(project: Path, images: Path) -> None:
    with Project.open(project) as opened:
        train(opened)


def label(project: Path, images: Path) -> None:
    """Answers that are refused are not stored; those that are confirmed are."""
    with Project.open(project) as opened:
        for row in opened.label_state()[0].pool_rows[:20].tolist():
            before = len(opened.store.events())
            try:
                write_answers(opened, [Answer(row, "kite")])
            except AgcdError:
                assert len(opened.store.events()) == before
                raise
            assert len(opened.store.events()) > before


def export(project: Path, images: Path) -> None:
    with Project.open(project) as opened:
        export_all(opened, project.parent / "out")


def backup(project: Path, images: Path) -> None:
    (project.parent / "made.zip").unlink(missing_ok=True)
    with Project.open(project) as opened:
        write_backup(opened, project.parent / "made.zip")


WORKS: dict[str, Work] = {
    "init": init,
    "extract": extract,
    "train": training,
    "label": label,
    "export": export,
    "backup": backup,
}


def used(folder: Path) -> int:
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_bsize


def fill(folder: Path, left: int) -> Path:
    """Leave about so many bytes free."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while (n := os.statvfs(folder).f_bfree * os.statvfs(folder).f_bsize - left) > 0:
            file.write(b"\0" * min(n, 2**16))
    return ballast


def outcome(work: Work, project: Path, images: Path) -> str:
    """What a person is told: nothing, if all goes well."""
    try:
        work(project, images)
    except AgcdError as error:
        return str(error)
    return ""


def result(project: Path) -> object:
    with Project.open(project) as opened:
        train(opened)
        return predictions(opened), [event.uid for event in opened.store.events()]


def try_one(whole: Path, disk: Path, name: str, share: float, needs: dict[str, int]) -> bool:
    """Whether the disk was full at that point."""
    project, images, work = disk / "project", whole.parent / "images", WORKS[name]
    if name != "init":
        shutil.copytree(whole, project)
    if name == "extract":
        shutil.rmtree(project / "cache")
    before = used(disk)
    if name not in needs:
        work(project, images)
        needs[name] = used(disk) - before
        _empty(disk)
        return False
    ballast = fill(disk, int(share * needs[name]))
    told = outcome(work, project, images)
    ballast.unlink()
    assert len(told.splitlines()) <= 1, told
    again = outcome(work, project, images) if told else ""
    assert not again, f"{name}: {again}"
    assert not [found for found in check_project(project) if found.is_damage], name
    if name not in ("init", "label"):
        assert result(project) == EXPECTED[0], f"{name}: other results"
    _empty(disk)
    return bool(told)


EXPECTED: list[object] = []


def _empty(disk: Path) -> None:
    for path in disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def main(disk: Path, seed: int, n: int) -> None:
    scratch = Path(os.environ["AGCD_SCRATCH"])
    with make_project(scratch) as project:
        train(project)
        answer_all(project)
    whole = scratch / "project"
    shutil.copytree(whole, scratch / "expected")
    EXPECTED.append(result(scratch / "expected"))
    rng, full, needs = np.random.default_rng(seed), Counter[str](), dict[str, int]()
    for name in WORKS:
        try_one(whole, disk, name, 1.0, needs)
    n_tried = 0
    while full.total() < n:
        name = list(WORKS)[n_tried % len(WORKS)]
        full[name] += try_one(whole, disk, name, float(rng.uniform(0, 1)), needs)
        n_tried += 1
        assert n_tried < 20 * n, f"the disk is hardly ever full: {full}"
    assert set(full) == set(WORKS), f"not all of it was tried on a full disk: {full}"
    print(dict(full))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
