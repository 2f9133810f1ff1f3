"""What leaves a project as tables, for spreadsheets (CSV) and programs (Parquet): labels and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agcd.app.project import Project
from agcd.app.snapshot import NO_GROUP, SOURCES, Snapshot

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
    """Every usable image with its class: a person's, else one accepted by page, else the model's; junk is left out.

    Slot, probability and margin are the model's in any case.
    """
    stored = pq.read_table(
        project.run_folder(project.last_round) / "predictions.parquet",
        columns=["row", "slot", "probability", "margin"],
    )
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
    }
    return {column: values.to_pylist() for column, values in columns.items()}


def kind_of(is_new: bool) -> str:
    return "new" if is_new else "old"
