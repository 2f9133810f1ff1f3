"""What leaves a project: labels and predictions as tables, for spreadsheets (CSV) and programs (Parquet)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from agcd.data.tables import write_table
from agcd.files import written_aside
from agcd.records.events import live_events
from agcd.records.fold import winning_answers

if TYPE_CHECKING:
    from agcd.project.folder import Project

Table = dict[str, list[Any]]


def label_table(project: Project) -> Table:
    """The answer that counts for each answered row: what was said, by whom, when."""
    registry = project.store.registry()
    answers = sorted(winning_answers(live_events(project.store.events())).items())
    infos = [registry.resolve(event.class_id) if event.class_id else None for _, event in answers]
    return {
        "row": [row for row, _ in answers],
        "path": [project.paths[row] for row, _ in answers],
        "answer": [event.kind for _, event in answers],
        "class": [info.name if info else None for info in infos],
        "kind": [_kind(not info.is_old) if info else None for info in infos],
        "who": [event.who for _, event in answers],
        "source": [event.source for _, event in answers],
        "at": [event.at for _, event in answers],
    }


def prediction_table(project: Project) -> Table:
    """Every usable image with its class: a person's where there is one, else the model's; junk is left out."""
    names, novel = project.slot_names()
    stored = pq.read_table(project.run_folder(project.n_finished - 1) / "predictions.parquet").to_pydict()
    labels, class_ids = project.labels()
    registry = project.store.registry()
    junk = labels.held_out & ~project.is_test
    kept = [i for i, row in enumerate(stored["row"]) if not junk[row]]
    rows, slots = ([stored[column][i] for i in kept] for column in ("row", "slot"))
    classes: list[tuple[str, bool, str]] = []
    for row, slot in zip(rows, slots, strict=True):
        if labels.y_class[row] >= 0:
            info = registry.classes[class_ids[labels.y_class[row]]]
            classes.append((info.name, not info.is_old, "human"))
        else:
            classes.append((shown_name(names, slot), bool(novel[slot]), "model"))
    return {
        "row": rows,
        "path": [project.paths[row] for row in rows],
        "split": ["test" if project.is_test[row] else "train" for row in rows],
        "class": [name for name, _, _ in classes],
        "kind": [_kind(is_novel) for _, is_novel, _ in classes],
        "probability": [stored["probability"][i] for i in kept],
        "margin": [stored["margin"][i] for i in kept],
        "slot": slots,
        "by": [by for _, _, by in classes],
    }


def shown_name(names: Sequence[str | None], slot: int) -> str:
    return names[slot] or f"unnamed #{slot}"


def _kind(is_novel: bool) -> str:
    return "new" if is_novel else "old"


def export_tables(project: Project, out: Path) -> list[Path]:
    """``labels`` and ``predictions`` in ``out``, each as CSV and as Parquet."""
    tables = {"labels": label_table(project), "predictions": prediction_table(project)}
    files = []
    for name, table in tables.items():
        write_table(out / f"{name}.csv", table)
        with written_aside(out / f"{name}.parquet") as aside:
            pq.write_table(pa.table(table), aside)
        files += [out / f"{name}.csv", out / f"{name}.parquet"]
    return files
