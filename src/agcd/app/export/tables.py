"""What leaves a project: labels and predictions as tables, for spreadsheets (CSV) and programs (Parquet)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agcd.app.store.classes import Registry
from agcd.app.store.events import LabelEvent, live_events
from agcd.app.store.fold import DECIDED, accepted_rows, winning_answers
from agcd.types import IntArray

if TYPE_CHECKING:
    from agcd.app.project import Project

Table = dict[str, list[Any]]
Saying = tuple[str, str, str]
"""The name of a class or of a group without a name, old or new, and who says so: human, page or model."""


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
        "kind": [kind_of(info.is_old) if info else None for info in infos],
        "who": [event.who for _, event in answers],
        "source": [event.source for _, event in answers],
        "at": [event.at for _, event in answers],
    }


def prediction_table(project: Project) -> Table:
    """Every usable image with its class: a person's, else one accepted by page, else the model's; junk is left out.

    Slot, probability and margin are the model's in any case.
    """
    live = live_events(project.store.events())
    answers = winning_answers(live)
    slots = _slot_sayings(project)  # refuses where nothing is trained
    stored = pq.read_table(
        project.run_folder(project.n_finished - 1) / "predictions.parquet",
        columns=["row", "slot", "probability", "margin"],
    )
    junk = [row for row, event in answers.items() if event.kind == "junk"]
    stored = stored.filter(pa.array(~np.isin(stored["row"].to_numpy(), junk)))
    rows = stored["row"].to_numpy()
    said = _said_of_rows(rows, stored["slot"].to_numpy(), slots, _known(live, answers, project.store.registry()))
    columns = {
        "row": stored["row"],
        "path": pa.array(project.paths, pa.string()).take(pa.array(rows)),
        "split": pa.array(("train", "test")).take(pa.array(project.is_test[rows].astype(np.int64))),
        "class": said[0],
        "kind": said[1],
        "probability": stored["probability"],
        "margin": stored["margin"],
        "slot": stored["slot"],
        "by": said[2],
    }
    return {column: values.to_pylist() for column, values in columns.items()}


def _slot_sayings(project: Project) -> list[Saying]:
    names, novel = project.slot_names()
    return [(shown_name(names, slot), kind_of(not novel[slot]), "model") for slot in range(len(names))]


def _known(live: Iterable[LabelEvent], answers: Mapping[int, LabelEvent], registry: Registry) -> dict[int, Saying]:
    """What people say of rows: accepted by page, unless somebody has labelled the row or thrown it out."""
    accepted = {
        row: event
        for row, event in accepted_rows(live).items()
        if row not in answers or answers[row].kind not in DECIDED
    }
    return {
        row: (info.name, kind_of(info.is_old), by)
        for by, events in (("human", answers), ("page", accepted))
        for row, event in events.items()
        if event.class_id and (info := registry.resolve(event.class_id))
    }


def _said_of_rows(
    rows: IntArray, y_slot: IntArray, slots: Sequence[Saying], known: Mapping[int, Saying]
) -> list[pa.Array]:
    """Class, kind and by whom of each row; ``rows`` are sorted.

    All that may be said stands in one list, slots first, and columns are looked up in it: a million rows take a moment.
    """
    sayings = [*slots, *dict.fromkeys(known.values())]
    number = {saying: i for i, saying in enumerate(sayings) if i >= len(slots)}
    known_rows = np.fromiter(known, np.int64, len(known))
    numbers = np.fromiter((number[saying] for saying in known.values()), np.int64, len(known))
    present = np.isin(known_rows, rows)
    chosen = y_slot.copy()
    chosen[np.searchsorted(rows, known_rows[present])] = numbers[present]
    return [pa.array(column, pa.string()).take(pa.array(chosen)) for column in zip(*sayings, strict=True)]


def shown_name(names: Sequence[str | None], slot: int) -> str:
    return names[slot] or f"unnamed #{slot}"


def kind_of(is_old: bool) -> str:
    return "old" if is_old else "new"
