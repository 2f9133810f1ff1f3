"""Run by a test: kills commands at random moments, again and again, and says how each kill ended.

    python -m support.command_kills FOLDER SEED N

Everything is imported once; each command is a fork of this process, so that a kill costs no start of Python.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agcd.app.backup import restore_backup, write_backup
from agcd.app.check import check_project, repair
from agcd.app.export.files import export_all
from agcd.app.export.folders import sort_into_folders
from agcd.app.model import train
from agcd.app.project import Project
from support.damage import damage
from support.projects import SETTINGS, answer_all, make_project, predictions


@dataclass
class Scene:
    """A trained project with open answers, its images and a backup from before these answers."""

    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def images(self) -> Path:
        return self.folder / "images"

    @property
    def backup(self) -> Path:
        return self.folder / "backup.zip"


def make_scene(folder: Path) -> Scene:
    with make_project(folder) as project:
        train(project)
        write_backup(project, folder / "backup.zip")
        answer_all(project)
    return Scene(folder)


def events_of(project: Path) -> list[str]:
    with Project.open(project) as opened:
        return [event.uid for event in opened.store.events()]


def init(scene: Scene, here: Path) -> None:
    Project.create(here / "project", scene.images, n_classes=5, settings=SETTINGS).close()


def after_init(scene: Scene, here: Path) -> None:
    if not (here / "project" / "project.db").exists():
        init(scene, here)
    with Project.open(here / "project") as project, Project.open(scene.project) as known:
        assert project.paths == known.paths
        assert len(project.store.events()) == len(known.store.events(0)[:12])


def training(scene: Scene, here: Path) -> None:
    with Project.open(here / "project") as project:
        train(project)


def export(scene: Scene, here: Path) -> None:
    with Project.open(here / "project") as project:
        export_all(project, here / "out")


def after_export(scene: Scene, here: Path) -> None:
    export(scene, here)
    with Project.open(here / "project") as project:
        expected = len(predictions(project)["row"])
    assert len((here / "out" / "predictions.csv").read_text().splitlines()) == expected + 1


def sort(scene: Scene, here: Path) -> None:
    with Project.open(here / "project") as project:
        sort_into_folders(project, here / "sorted", "copy")


def backup(scene: Scene, here: Path) -> None:
    with Project.open(here / "project") as project:
        write_backup(project, here / "made.zip")


def after_backup(scene: Scene, here: Path) -> None:
    if not (here / "made.zip").exists():
        backup(scene, here)
    restore_backup(here / "made.zip", here / "again")
    assert events_of(here / "again") == events_of(scene.project)


def restore(scene: Scene, here: Path) -> None:
    restore_backup(scene.backup, here / "project", replace=True)


def after_restore(scene: Scene, here: Path) -> None:
    restore(scene, here)
    kept = [path for path in here.glob("project/replaced-*") if (path / "project.db").exists()]
    assert any(_uids(path) == events_of(scene.project) for path in kept), "the answers that were replaced are gone"
    shutil.rmtree(here / "project")
    shutil.copytree(scene.project, here / "project")


def _uids(folder: Path) -> list[str]:
    from agcd.app.store.store import Store

    with Store(folder / "project.db") as store:
        return [event.uid for event in store.events()]


def mend(scene: Scene, here: Path) -> None:
    model = here / "project" / "runs" / "000" / "model.safetensors"
    if model.exists() and not (here / "damaged once").exists():
        damage(model, "truncate")
        (here / "damaged once").touch()
    repair(here / "project", check_project(here / "project"))


def after_mend(scene: Scene, here: Path) -> None:
    mend(scene, here)
    training(scene, here)


Command = tuple[Callable[[Scene, Path], None], Callable[[Scene, Path], None]]
COMMANDS: dict[str, Command] = {
    "init": (init, after_init),
    "train": (training, training),
    "export": (export, after_export),
    "sort": (sort, sort),
    "backup": (backup, after_backup),
    "restore": (restore, after_restore),
    "check --repair": (mend, after_mend),
}
"""What is killed, and what must work afterwards."""


def killed(work: Callable[[], None], seconds: float) -> bool:
    """Whether ``work`` in a process of its own was still at it after so many seconds, and was killed."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def try_one(scene: Scene, here: Path, name: str, seconds: float) -> bool:
    """Kill one command, then go on as a person would; whether it was killed in time."""
    work, afterwards = COMMANDS[name]
    here.mkdir()
    if name != "init":
        shutil.copytree(scene.project, here / "project")
    was_killed = killed(lambda: work(scene, here), seconds)
    afterwards(scene, here)
    if name != "init":
        assert events_of(here / "project") == events_of(scene.project), f"{name}: answers were lost or doubled"
    left = [finding.line(here / "project") for finding in check_project(here / "project") if finding.is_damage]
    assert not left, f"{name}: {left}"
    shutil.rmtree(here)
    return was_killed


def main(folder: Path, seed: int, n: int) -> None:
    scene = make_scene(folder)
    rng, kills, longest = np.random.default_rng(seed), Counter[str](), dict.fromkeys(COMMANDS, 1.0)
    while kills.total() < n:
        name = list(COMMANDS)[kills.total() % len(COMMANDS)]
        seconds = float(rng.uniform(0, longest[name]))
        if try_one(scene, folder / "here", name, seconds):
            kills[name] += 1
        else:  # it was faster: the next kill comes earlier
            longest[name] = max(0.02, 0.8 * longest[name])
    print(dict(kills))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
