"""All that a project hands out, as files or as bytes, and the answers that come back from Label Studio.

Only the classifier needs torch; labels and predictions are served without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agcd.app.answers import Answer, Told, write_answers
from agcd.app.export.coco import to_coco
from agcd.app.export.label_studio import labelling_config, read_label_studio, to_label_studio
from agcd.app.project import Project
from agcd.app.rounds import NO_SLOT
from agcd.app.snapshot import NO_GROUP, SOURCES, Snapshot
from agcd.app.store.classes import NO_CLASS, ClassInfo
from agcd.data.tables import table_text
from agcd.errors import DataError, did_you_mean
from agcd.io import atomic_write
from agcd.run_files import MODEL, PREDICTIONS, checked

Table = dict[str, list[Any]]


def label_table(project: Project, snapshot: Snapshot) -> Table:
    """The answer that counts for each answered row: what was said, by whom, when."""
    labels = snapshot.labels
    found = [(row, event) for row, event in labels.answers() if event.kind != "accept"]
    infos = [labels.registry.resolve(event.class_id) if event.class_id else None for _, event in found]
    return {
        "row": [row for row, _ in found],
        "path": [project.paths[row] for row, _ in found],
        "answer": [event.kind for _, event in found],
        "class": [info.name if info else None for info in infos],
        "kind": [kind_of(not info.is_old) if info else None for info in infos],
        "who": [event.who for _, event in found],
        "source": [event.source for _, event in found],
        "at": [event.at for _, event in found],
    }


def prediction_table(project: Project, snapshot: Snapshot) -> Table:
    """Every usable image with its class: a person's, else one accepted by page, else what the answers say, else the
    model's; junk is left out.

    Slot, probability and margin are the model's in any case, and empty before the first training; certainty is the
    chance that the class is right, 1 where a person says so.
    """
    stored = _model_says(project, snapshot)
    says = snapshot.says(stored["row"].to_numpy())
    keep = says.group != NO_GROUP
    stored, numbers, rows = stored.filter(pa.array(keep)), pa.array(says.group[keep]), stored["row"].to_numpy()[keep]
    kinds = [kind_of(is_new) for is_new in snapshot.is_new]
    # All names stand in one list and columns are looked up in it: a million rows take a moment.
    columns = {
        "row": stored["row"],
        "path": pa.array(project.paths, pa.string()).take(pa.array(rows)),
        "split": pa.array(("train", "test")).take(pa.array(project.is_test[rows].astype(np.int64))),
        "class": pa.array(snapshot.names, pa.string()).take(numbers),
        "kind": pa.array(kinds, pa.string()).take(numbers),
        "probability": stored["probability"],
        "margin": stored["margin"],
        "slot": stored["slot"],
        "by": pa.array(SOURCES).take(pa.array(says.by[keep])),
        "certainty": pa.array(snapshot.p_right(rows).astype(np.float64).round(4)),
    }
    return {column: values.to_pylist() for column, values in columns.items()}


def _model_says(project: Project, snapshot: Snapshot) -> pa.Table:
    """What the last model says of every usable image, by row."""
    if snapshot.n_finished or snapshot.round is None:
        path = checked(project.run_folder(project.last_round), PREDICTIONS)
        return pq.read_table(path, columns=["row", "slot", "probability", "margin"])
    rows = np.flatnonzero(snapshot.round.top_slots[:, 0] != NO_SLOT)
    empty = pa.nulls(len(rows), pa.float64())
    return pa.table({"row": rows, "slot": pa.nulls(len(rows), pa.int64()), "probability": empty, "margin": empty})


def kind_of(is_new: bool) -> str:
    return "new" if is_new else "old"


_TASKS_PER_CHUNK = 1000
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_NO_PREDICTIONS: Table = {"row": [], "class": [], "probability": [], "by": []}


def export_all(project: Project, out: Path, *, onnx: bool = False) -> list[Path]:
    """Write everything into ``out``: labels, predictions and the classifier; returns the files.

    ``onnx`` adds ``model.onnx``, for which agcd[onnx] must be installed.
    """
    from agcd.app.export.classifier import write_classifier
    from agcd.app.export.onnx import require_onnx, write_onnx

    if onnx:
        require_onnx()
    content, files = _Content(project, project.trained_snapshot()), []
    classifier = _classifier(project, content.snapshot)
    for name, chunks in _LIGHT.items():
        with atomic_write(out / name) as aside, aside.open("wb") as handle:
            handle.writelines(chunks(content))
        files.append(out / name)
    files += write_classifier(out, classifier)
    if onnx:
        write_onnx(out / "model.onnx", classifier)
        files.append(out / "model.onnx")
    return files


def export_file(project: Project, name: str, snapshot: Snapshot | None = None) -> bytes:
    """The content of one of ``light_files()``."""
    return b"".join(file_chunks(project, name, snapshot))


def file_chunks(project: Project, name: str, snapshot: Snapshot | None = None) -> Iterator[bytes]:
    """``export_file`` piece by piece: of a million images the tasks for Label Studio are hundreds of megabytes."""
    if name not in _LIGHT:
        raise DataError(f"There is no export called {name!r}.{did_you_mean(name, _LIGHT)}")
    return iter(_LIGHT[name](_Content(project, snapshot or project.snapshot())))


def light_files() -> tuple[str, ...]:
    """The files that are made on demand, without torch."""
    return tuple(_LIGHT)


def tell_label_studio(project: Project, file: Path, who: str = "label-studio") -> dict[str, Told]:
    """Store the answers in an export of Label Studio, all or none; what became of them, by person.

    ``who`` said it where the file does not tell. An answer that went out from here and came back unchanged is no
    news: what was said about the image meanwhile stands.
    """
    row_of = {path: row for row, path in enumerate(project.paths)}
    answered = {row for row, event in project.labels().answers() if event.kind != "accept"}
    answers: dict[str, list[Answer]] = {}
    for said in read_label_studio(file, project.paths, who):
        if said.is_news or row_of[said.path] not in answered:
            answers.setdefault(said.who, []).append(Answer(row_of[said.path], said.label))
    with project.store.transaction():
        return {person: write_answers(project, given, person) for person, given in answers.items()}


class _Content:
    """The tables of a project, each read once however many files are made of it."""

    def __init__(self, project: Project, snapshot: Snapshot) -> None:
        self.project, self.snapshot = project, snapshot

    @cached_property
    def labels(self) -> Table:
        return label_table(self.project, self.snapshot)

    @cached_property
    def predictions(self) -> Table:
        return prediction_table(self.project, self.snapshot)

    @cached_property
    def classes(self) -> list[ClassInfo]:
        """The classes as people know them now."""
        return [info for info in self.snapshot.labels.registry.infos if info.merged_into is None]

    def coco(self) -> bytes:
        classes = [(info.name, kind_of(not info.is_old)) for info in self.classes]
        value = to_coco(self.project.paths, self.labels, classes, f"Labels of the images in {self.project.images.name}")
        return _json(value)

    def label_studio(self) -> Iterator[bytes]:
        project, n_finished = self.project, self.snapshot.n_finished
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


def _classifier(project: Project, snapshot: Snapshot) -> Any:
    from agcd.app.export.classifier import NamedSlot, classifier_of_run

    is_named = (snapshot.owner_of_slot != NO_CLASS).tolist()
    slots = [
        NamedSlot(name, is_old=not is_new, is_named=named)
        for (name, is_new), named in zip(snapshot.slot_names, is_named, strict=True)
    ]
    run = project.checked_run(snapshot.n_finished - 1)
    return classifier_of_run(checked(run, MODEL), project.config.backbone, slots)
