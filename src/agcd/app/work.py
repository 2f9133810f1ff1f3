"""The child process of a job: ``python -m agcd.app.work DIR prepare|round|export|start|train|grow N BEGAN``. It
loads torch, but nothing heavy before it has said that it lives."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agcd.app.jobs import KINDS, JobState, Kind, export_folder, seal_export, take_up, write_job
from agcd.errors import AgcdError, not_installed
from agcd.io import fault_of_disk
from agcd.processes import step_back

if TYPE_CHECKING:
    from agcd.app.project import Project

_WRITE_SECONDS = 0.2
NICENESS = "AGCD_NICENESS"
"""The variable of the environment that sets how far the work steps back behind everything else; 0 is not at all."""
_NICENESS = 15


class ProgressFile:
    """Writes how far the work is, a few times a second at most."""

    training = "training"
    """What the stage of the epochs is called."""

    def __init__(self, folder: Path, state: JobState) -> None:
        self.folder, self.state, self._written = folder, state, 0.0

    def stage(self, words: str) -> None:
        self.state = replace(self.state, stage=words, done=0, total=0, stage_began=time.time(), loss=[])
        self._write()

    def progress(self, done: int, total: int) -> None:
        self.state = replace(self.state, done=done, total=total)
        if time.monotonic() - self._written > _WRITE_SECONDS:
            self._write()

    def epoch(self, line: dict[str, Any]) -> None:
        if self.state.stage != self.training:
            self.stage(self.training)
        self.state = replace(self.state, loss=[*self.state.loss, round(float(line["loss"]), 4)])
        self.progress(line["epoch"] + 1, line["n_epochs"])

    def end(self, error: str | None = None) -> None:
        self.state = replace(self.state, state="failed" if error else "done", error=error, ended=time.time())
        self._write()

    def _write(self) -> None:
        write_job(self.folder, self.state)
        self._written = time.monotonic()


def run(project_folder: Path, kind: Kind, n_questions: int | None) -> None:
    """Do the work of one job, telling how far it is; a user's mistake ends it with one sentence."""
    from agcd.app.project import Project

    folder = project_folder / "cache" / "job"
    told = ProgressFile(folder, JobState("running", kind, began=time.time(), pid=os.getpid()))
    told.stage("starting")
    try:
        with Project.open(project_folder) as project:
            _WORK[kind](project, told, n_questions)
        told.end()
    except AgcdError as error:
        told.end(str(error))
    except Exception as error:
        fault = _fault(error)
        if fault:
            told.end(str(fault))
            return
        told.end(f"Our mistake ({type(error).__name__}: {error}); details are in {folder / 'output.txt'}.")
        raise


def _fault(error: Exception) -> AgcdError | None:
    """What the disk or the installation is to blame for."""
    if isinstance(error, ModuleNotFoundError):
        return not_installed("This work", error.name)
    return fault_of_disk(error) if isinstance(error, OSError) else None


def prepare(project: Project, told: ProgressFile, n_questions: int | None) -> None:
    """Features of every image, and how many classes there seem to be."""
    from agcd.app import model

    told.stage(f"reading {project.kind.nouns}")
    features = model.row_features(project, told.progress)
    if project.n_finished == 0 and project.label_state()[0].n_old:
        told.stage("estimating the number of classes")
        model.estimate_classes(project, features, told.progress)


def next_round(project: Project, told: ProgressFile, n_questions: int | None) -> None:
    """Train on everything said so far, then choose the next questions."""
    from agcd.app import model

    number = project.n_finished
    told.training = f"training round {number}" if number else "base training"
    told.stage(f"reading {project.kind.nouns}")
    model.train(project, told.epoch, told.progress)
    told.stage("choosing questions")
    model.ask(project, n_questions)


def export(project: Project, told: ProgressFile, n_questions: int | None) -> None:
    """The files of the classifier and the report, for download."""
    from agcd.app.export.files import export_all
    from agcd.app.report import write_project_report
    from agcd.features.onnx_graph import has_onnx

    out = export_folder(project.folder, project.n_finished)
    told.stage("writing the classifier")
    export_all(project, out, onnx=has_onnx())
    told.stage("writing the report")
    write_project_report(project, out)
    seal_export(out)


def start(project: Project, told: ProgressFile, n_questions: int | None) -> None:
    """First what the first question needs, as fast as the machine can; then, without haste, the first training."""
    from agcd.app import model

    # The first training learns what was known before the first question: whatever people name is new to it.
    project.store.begin_run(0)
    told.stage(f"looking at the {project.kind.nouns}")
    features = model.row_features(project, told.progress, n_views=1)
    told.stage("finding groups")
    model.make_start_view(project, features)
    without_haste()
    told.stage("looking more closely")
    features = model.row_features(project, told.progress)
    told.stage("estimating the number of classes")
    model.estimate_classes(project, features, told.progress)
    train(project, told, n_questions)


def train(project: Project, told: ProgressFile, n_questions: int | None) -> None:
    """Train on everything said so far, without haste, while people go on answering."""
    from agcd.app import model

    without_haste()
    told.training = "learning from your answers" if project.n_finished else "first training"
    told.stage("looking more closely")
    model.train(project, told.epoch, told.progress)


def grow(project: Project, told: ProgressFile, n_questions: int | None) -> None:
    """Look at the pictures that were added, as fast as the machine can: people wait for them."""
    from agcd.app import model

    told.stage(f"looking at new {project.kind.nouns}")
    model.look_at_new_rows(project, told.progress)


def without_haste() -> None:
    """Let whatever else runs on this machine go first, the page above all."""
    step_back(int(os.environ.get(NICENESS, _NICENESS)))


_WORK = {"prepare": prepare, "round": next_round, "export": export, "start": start, "train": train, "grow": grow}
assert tuple(_WORK) == KINDS


if __name__ == "__main__":
    place, chosen, number, began = sys.argv[1:]
    held = take_up(Path(place) / "cache" / "job", float(began))
    if held:
        run(Path(place), chosen, int(number) or None)  # type: ignore[arg-type]
