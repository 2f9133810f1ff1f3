"""The page and the benchmark run the same loop: answers over HTTP lead to the same models as the simulated oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from agcd.cli.by_hand import make_project
from agcd.lab.cells import Cell, open_session, prepare, run_cell
from agcd.lab.person.annotator import Annotator, served
from support.benches import SMALL, toy_folder


def test_answers_over_http_reach_the_accuracy_of_the_benchmark(tmp_path: Path) -> None:
    cell = Cell(str(toy_folder(tmp_path / "images")), "adaptive_novel", 0, SMALL)
    out, cache, folder = tmp_path / "out", tmp_path / "cache", tmp_path / "project"
    run_cell(cell, out, cache)
    prepared = prepare(cell, cache)
    make_project(cell, folder, out, cache).close()
    with served(folder) as (address, secret):
        annotator = Annotator(address, secret, lambda row: prepared.evaluator.answer(np.array([row]))[0])
        answers = []
        for _ in range(2):
            answers.append(annotator.label_round())
            annotator.train_round()
    assert answers == [3, 3]
    session = open_session(cell, prepared, out)
    session.train()
    for number in (1, 2):
        query = session.ask()
        session.tell(query.rows, prepared.evaluator.answer(query.rows))
        expected = session.train().fitted.predict(prepared.features, prepared.evaluator.rows)
        table = pq.read_table(folder / "runs" / f"{number:03d}" / "predictions.parquet").to_pydict()
        slot_of_row = dict(zip(table["row"], table["slot"], strict=True))
        assert [slot_of_row[row] for row in expected.rows.tolist()] == expected.y_slot.tolist()
