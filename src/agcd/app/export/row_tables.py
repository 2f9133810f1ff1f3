"""What a project says of its rows, as columns: the same names in every file and command.

docs/project.md explains the columns. The tables need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agcd.app.project import Project
from agcd.app.rounds import NO_SLOT
from agcd.app.snapshot import NO_GROUP, SOURCES, Snapshot
from agcd.data.tables import jsonl_text, table_text
from agcd.run_files import PREDICTIONS, checked

if TYPE_CHECKING:
    import pyarrow as pa

Table = dict[str, list[Any]]


def label_table(project: Project, snapshot: Snapshot) -> Table:
    """The answer that counts for each answered row: what was said, by whom, when."""
    labels = snapshot.labels
    found = [(row, event) for row, event in labels.answers() if event.kind not in ("accept", "remove")]
    infos = [labels.registry.resolve(event.class_id) if event.class_id else None for _, event in found]
    table: Table = {
        "row": [row for row, _ in found],
        "path": [project.paths[row] for row, _ in found],
        "split": ["test" if project.is_test[row] else "train" for row, _ in found],
        "class": [info.name if info else None for info in infos],
        "known": [info.is_old if info else None for info in infos],
        "answer": [event.kind for _, event in found],
        "who": [event.who for _, event in found],
        "source": [event.source for _, event in found],
        "at": [event.at for _, event in found],
    }
    return with_contents(project, table)


def prediction_table(project: Project, snapshot: Snapshot) -> Table:
    """Every usable row with its class: a person's, else one accepted by page, else what the answers say, else the
    model's; junk and what was removed are left out.

    Probability, margin and slot are the model's in any case, and empty before the first training; certainty is the
    chance that the class is right, 1 where a person says so.
    """
    import pyarrow as pa  # here and below, because labelling can do without it

    stored = _model_says(project, snapshot)
    says = snapshot.says(stored["row"].to_numpy())
    keep = says.group != NO_GROUP
    stored, numbers, rows = stored.filter(pa.array(keep)), pa.array(says.group[keep]), stored["row"].to_numpy()[keep]
    # All names stand in one list and columns are looked up in it: a million rows take a moment.
    columns = {
        "row": stored["row"],
        "path": pa.array(project.paths, pa.string()).take(pa.array(rows)),
        "split": pa.array(("train", "test")).take(pa.array(project.is_test[rows].astype(np.int64))),
        "class": pa.array(snapshot.names, pa.string()).take(numbers),
        "known": pa.array([not is_new for is_new in snapshot.is_new], pa.bool_()).take(numbers),
        "by": pa.array(SOURCES).take(pa.array(says.by[keep])),
        "certainty": pa.array(snapshot.p_right(rows).astype(np.float64).round(4)),
        "probability": stored["probability"],
        "margin": stored["margin"],
        "slot": stored["slot"],
    }
    return with_contents(project, {column: values.to_pylist() for column, values in columns.items()})


def with_contents(project: Project, table: Table) -> Table:
    """``table`` with what its rows hold behind their path, where they are no files."""
    contents = project.contents()
    held = project.kind.columns([contents[row] for row in table["row"]])
    return {"row": table["row"], "path": table["path"], **held, **table}


def _model_says(project: Project, snapshot: Snapshot) -> pa.Table:
    """What the last model says of every usable row, by row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if snapshot.n_finished or snapshot.round is None:
        path = checked(project.run_folder(project.last_round), PREDICTIONS)
        stored = pq.read_table(path, columns=["row", "slot", "probability", "margin"])
        return pa.concat_tables([stored, _of_later_rows(project, snapshot).cast(stored.schema)])
    rows = np.flatnonzero(snapshot.round.top_slots[:, 0] != NO_SLOT)
    empty = pa.nulls(len(rows), pa.float64())
    return pa.table({"row": rows, "slot": pa.nulls(len(rows), pa.int64()), "probability": empty, "margin": empty})


def _of_later_rows(project: Project, snapshot: Snapshot) -> pa.Table:
    """The same of the rows that were added since the last round began; nothing while nobody has looked at them."""
    import pyarrow as pa

    first, seen = project.labels_of_round(project.last_round).n_rows, snapshot.round
    rows = np.arange(first, snapshot.labels.n_rows)
    if seen is None:
        return pa.table({"row": rows, **{name: pa.nulls(len(rows)) for name in ("slot", "probability", "margin")}})
    rows = rows[(seen.top_slots[rows, 0] != NO_SLOT) | (rows >= seen.n_rows - seen.n_unseen)]
    is_seen = (seen.top_slots[rows, 0] != NO_SLOT) & (seen.number == project.last_round)
    columns = {
        "slot": seen.top_slots[rows, 0].astype(np.int64),
        "probability": seen.top_probs[rows, 0].astype(np.float64),
        "margin": seen.margin(rows).astype(np.float64),
    }
    return pa.table({"row": rows, **{name: pa.array(values, mask=~is_seen) for name, values in columns.items()}})


def as_csv(table: Table) -> bytes:
    return table_text(table).encode()


def as_jsonl(table: Table) -> bytes:
    return jsonl_text(table).encode()


def as_parquet(table: Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(table), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
