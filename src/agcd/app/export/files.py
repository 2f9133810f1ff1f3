"""All that a project hands out, as files or as bytes, and the answers that come back from Label Studio.

Only the classifier needs torch; labels and predictions are served without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from agcd.app.answers import Answer, Told
from agcd.app.export.coco import to_coco
from agcd.app.export.label_studio import labelling_config, to_label_studio
from agcd.app.export.label_studio_answers import read_label_studio
from agcd.app.export.tables import Table, kind_of, label_table, prediction_table, shown_name
from agcd.app.store.classes import ClassInfo
from agcd.app.store.events import live_events
from agcd.app.store.fold import winning_answers
from agcd.data.tables import table_text
from agcd.errors import DataError, did_you_mean
from agcd.io import atomic_write

if TYPE_CHECKING:
    from agcd.app.project import Project

_TASKS_PER_CHUNK = 1000
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_NO_PREDICTIONS: Table = {"row": [], "class": [], "probability": [], "by": []}


def export_all(project: Project, out: Path, *, onnx: bool) -> list[Path]:
    """Write everything into ``out``: labels, predictions and the classifier; returns the files.

    ``onnx`` adds ``model.onnx``, for which agcd[onnx] must be installed.
    """
    from agcd.app.export.classifier import write_classifier
    from agcd.app.export.onnx import require_onnx, write_onnx

    if onnx:
        require_onnx()
    content, files = _Content(project), []
    classifier = _classifier(project)
    for name, chunks in _LIGHT.items():
        with atomic_write(out / name) as aside, aside.open("wb") as handle:
            handle.writelines(chunks(content))
        files.append(out / name)
    files += write_classifier(out, classifier)
    if onnx:
        write_onnx(out / "model.onnx", classifier)
        files.append(out / "model.onnx")
    return files


def export_file(project: Project, name: str) -> bytes:
    """The content of one of ``light_files()``."""
    return b"".join(file_chunks(project, name))


def file_chunks(project: Project, name: str) -> Iterator[bytes]:
    """``export_file`` piece by piece: of a million images the tasks for Label Studio are hundreds of megabytes."""
    if name not in _LIGHT:
        raise DataError(f"There is no export called {name!r}.{did_you_mean(name, _LIGHT)}")
    return iter(_LIGHT[name](_Content(project)))


def light_files() -> tuple[str, ...]:
    """The files that are made on demand, without torch."""
    return tuple(_LIGHT)


def tell_label_studio(project: Project, file: Path, who: str = "label-studio") -> dict[str, Told]:
    """Store the answers in an export of Label Studio, all or none; what became of them, by person.

    ``who`` said it where the file does not tell. An answer that went out from here and came back unchanged is no
    news: what was said about the image meanwhile stands.
    """
    row_of = {path: row for row, path in enumerate(project.paths)}
    answered = winning_answers(live_events(project.store.events()))
    answers: dict[str, list[Answer]] = {}
    for said in read_label_studio(file, project.paths, who):
        if said.is_news or row_of[said.path] not in answered:
            answers.setdefault(said.who, []).append(Answer(row_of[said.path], said.label))
    with project.store.transaction():
        return {person: project.tell(given, person) for person, given in answers.items()}


class _Content:
    """The tables of a project, each read once however many files are made of it."""

    def __init__(self, project: Project) -> None:
        self.project = project

    @cached_property
    def labels(self) -> Table:
        return label_table(self.project)

    @cached_property
    def predictions(self) -> Table:
        return prediction_table(self.project)

    @cached_property
    def classes(self) -> list[ClassInfo]:
        """The classes as people know them now."""
        return [info for info in self.project.store.registry().classes.values() if info.merged_into is None]

    def coco(self) -> bytes:
        classes = [(info.name, kind_of(info.is_old)) for info in self.classes]
        value = to_coco(self.project.paths, self.labels, classes, f"Labels of the images in {self.project.images.name}")
        return _json(value)

    def label_studio(self) -> Iterator[bytes]:
        project, n_finished = self.project, self.project.n_finished
        takes_answers = (row for row, is_test in enumerate(project.is_test.tolist()) if not is_test)
        tasks = to_label_studio(
            ((row, project.paths[row]) for row in takes_answers),
            self.labels,
            self.predictions if n_finished else _NO_PREDICTIONS,
            self.open_names,
            project.images.name,
            f"agcd round {n_finished - 1}",
        )
        before = b"["
        while chunk := list(islice(tasks, _TASKS_PER_CHUNK)):
            yield before + b",\n".join(map(_json, chunk))
            before = b",\n"
        yield b"]\n" if before != b"[" else b"[]\n"

    @property
    def open_names(self) -> list[str]:
        """The names that take answers."""
        return [info.name for info in self.classes if not info.retired]

    def label_studio_config(self) -> bytes:
        return labelling_config(self.open_names).encode()


def _json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


def _csv(table: Table) -> bytes:
    return table_text(table).encode()


def _parquet(table: Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(table), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


_LIGHT: dict[str, Callable[[_Content], Iterable[bytes]]] = {
    "labels.csv": lambda content: [_csv(content.labels)],
    "labels.parquet": lambda content: [_parquet(content.labels)],
    "predictions.csv": lambda content: [_csv(content.predictions)],
    "predictions.parquet": lambda content: [_parquet(content.predictions)],
    "labels.coco.json": lambda content: [content.coco()],
    "labels.label-studio.json": _Content.label_studio,
    "label-studio-config.xml": lambda content: [content.label_studio_config()],
}


def _classifier(project: Project) -> Any:
    from agcd.app.export.classifier import NamedSlot, classifier_of_run
    from agcd.app.model import checked_run

    names, novel = project.slot_names()
    slots = [
        NamedSlot(shown_name(names, slot), is_old=not novel[slot], is_named=names[slot] is not None)
        for slot in range(len(names))
    ]
    run = checked_run(project, project.n_finished - 1)
    return classifier_of_run(run / "model.safetensors", project.config.backbone, slots)
