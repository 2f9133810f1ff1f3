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

from agcd.app.answers import Answer, Told, write_answers
from agcd.app.embeddings import has_given_embeddings
from agcd.app.export.coco import to_coco
from agcd.app.export.fiftyone import to_fiftyone
from agcd.app.export.label_studio import labelling_config, to_label_studio
from agcd.app.export.model_card import MODEL_CARD, model_card
from agcd.app.export.row_tables import Table, as_csv, as_jsonl, as_parquet, label_table, prediction_table
from agcd.app.kinds import ItemKind
from agcd.app.project import Project
from agcd.app.snapshot import Snapshot
from agcd.app.store.classes import NO_CLASS, ClassInfo
from agcd.data.label_studio import IMAGE as PICTURE
from agcd.data.label_studio import TEXT, read_label_studio
from agcd.errors import DataError, did_you_mean
from agcd.io import atomic_write
from agcd.run_files import MODEL, checked

_TASKS_PER_CHUNK = 1000
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_NO_PREDICTIONS: Table = {"row": [], "class": [], "probability": [], "by": []}


def export_all(project: Project, out: Path, *, onnx: bool = False) -> list[Path]:
    """Write everything into ``out``: labels, predictions and the classifier; returns the files.

    ``onnx`` adds ``model.onnx``, for which agcd[onnx] must be installed.
    """
    from agcd.app.export.classifier import describe, write_classifier
    from agcd.app.export.onnx import require_onnx, write_onnx

    if onnx:
        require_onnx()
    content, files = _Content(project, project.trained_snapshot()), []
    classifier = _classifier(project, content.snapshot)
    for name in light_files(project.kind):
        with atomic_write(out / name) as aside, aside.open("wb") as handle:
            handle.writelines(_LIGHT[name](content))
        files.append(out / name)
    files += write_classifier(out, classifier)
    if onnx:
        write_onnx(out / "model.onnx", classifier)
        files.append(out / "model.onnx")
    with atomic_write(out / MODEL_CARD) as aside:
        card = model_card(project, content.snapshot, describe(classifier), onnx=onnx)
        aside.write_text(card, encoding="utf-8", newline="\n")
    return [*files, out / MODEL_CARD]


def export_file(project: Project, name: str, snapshot: Snapshot | None = None) -> bytes:
    """The content of one of ``light_files()``."""
    return b"".join(file_chunks(project, name, snapshot))


def file_chunks(project: Project, name: str, snapshot: Snapshot | None = None) -> Iterator[bytes]:
    """``export_file`` piece by piece: of a million images the tasks for Label Studio are hundreds of megabytes."""
    if name not in _LIGHT:
        raise DataError(f"There is no export called {name!r}.{did_you_mean(name, _LIGHT)}")
    if name not in light_files(project.kind):
        raise DataError(f"{name} lists picture files, and {project.kind.nouns} are none: take labels.jsonl instead.")
    return iter(_LIGHT[name](_Content(project, snapshot or project.snapshot())))


def light_files(kind: ItemKind | None = None) -> tuple[str, ...]:
    """The files that are made on demand, without torch: of a project of this ``kind``, or of any."""
    return tuple(name for name in _LIGHT if kind is None or not kind.file_ending or name not in _OF_FILES)


def tell_label_studio(project: Project, file: Path, who: str = "label-studio") -> dict[str, Told]:
    """Store the answers in an export of Label Studio, all or none; what became of them, by person.

    ``who`` said it where the file does not tell. An answer that went out from here and came back unchanged is no
    news: what was said about the image meanwhile stands.
    """
    row_of = {path: row for row, path in enumerate(project.paths)}
    answered = {row for row, event in project.labels().answers() if event.kind != "accept"}
    answers: dict[str, list[Answer]] = {}
    for said in read_label_studio(file, project.paths, who, project.kind.name):
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

    @property
    def images(self) -> dict[int, str]:
        """The path of every image by row, without those that were removed."""
        paths = self.project.paths
        return {row: paths[row] for row in self.snapshot.labels.present_rows.tolist()}

    def coco(self) -> bytes:
        classes = [(info.name, info.is_old) for info in self.classes]
        value = to_coco(self.images, self.labels, classes, f"Labels of the images in {self.project.images.name}")
        return _json(value)

    def fiftyone(self) -> bytes:
        return _json(to_fiftyone(self.images, self.labels, [info.name for info in self.classes]))

    def label_studio(self) -> Iterator[bytes]:
        project, n_finished = self.project, self.snapshot.n_finished
        tasks = to_label_studio(
            ((row, project.paths[row]) for row in self.snapshot.labels.train_rows.tolist()),
            self.labels,
            self.predictions if n_finished else _NO_PREDICTIONS,
            self.open_names,
            project.images.name,
            f"agcd round {n_finished - 1}",
            self._text_of if project.kind.file_ending else None,
        )
        before = b"["
        while chunk := list(islice(tasks, _TASKS_PER_CHUNK)):
            yield before + b",\n".join(map(_json, chunk))
            before = b",\n"
        yield b"]\n" if before != b"[" else b"[]\n"

    def _text_of(self, row: int) -> str:
        """What Label Studio shows of a row that is no file."""
        kind, content = self.project.kind, self.project.contents()[row]
        shown = kind.shown(content)
        return (kind.excerpt(content) if shown.cells else shown.text) or self.project.paths[row]

    @property
    def open_names(self) -> list[str]:
        """The names that take answers."""
        return [info.name for info in self.classes if not info.retired]

    def label_studio_config(self) -> bytes:
        return labelling_config(self.open_names, TEXT if self.project.kind.file_ending else PICTURE).encode()


def _json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


_LIGHT: dict[str, Callable[[_Content], Iterable[bytes]]] = {
    "labels.csv": lambda content: [as_csv(content.labels)],
    "labels.jsonl": lambda content: [as_jsonl(content.labels)],
    "labels.parquet": lambda content: [as_parquet(content.labels)],
    "predictions.csv": lambda content: [as_csv(content.predictions)],
    "predictions.jsonl": lambda content: [as_jsonl(content.predictions)],
    "predictions.parquet": lambda content: [as_parquet(content.predictions)],
    "labels.coco.json": lambda content: [content.coco()],
    "labels.fiftyone.json": lambda content: [content.fiftyone()],
    "labels.label-studio.json": _Content.label_studio,
    "label-studio-config.xml": lambda content: [content.label_studio_config()],
}
_OF_FILES = frozenset({"labels.coco.json", "labels.fiftyone.json"})
"""What lists picture files, and nothing else."""


def _classifier(project: Project, snapshot: Snapshot) -> Any:
    from agcd.app.export.classifier import NamedSlot, classifier_of_run, vector_classifier_of_run

    is_named = (snapshot.owner_of_slot != NO_CLASS).tolist()
    slots = [
        NamedSlot(name, is_old=not is_new, is_named=named)
        for (name, is_new), named in zip(snapshot.slot_names, is_named, strict=True)
    ]
    run = project.checked_run(snapshot.n_finished - 1)
    model, config = checked(run, MODEL), project.config.backbone
    if has_given_embeddings(project.store):
        return vector_classifier_of_run(model, None, slots)
    if project.kind.file_ending:
        return vector_classifier_of_run(model, config, slots)
    return classifier_of_run(model, config, slots)
