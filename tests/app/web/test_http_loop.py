"""The page and the lab run the same loops: explicit rounds lead to the same models as the benchmark, and live questions
are those of the library, answer by answer."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from agcd.app.model import row_features
from agcd.asking import Asking
from agcd.cli.by_hand import make_project
from agcd.lab.cells import Cell, open_session, prepare, run_cell
from agcd.lab.person.annotator import Annotator, served
from agcd.lab.person.ways import live_neighbours
from agcd.training.fitted import frozen_features
from support.benches import SMALL, toy_folder
from support.projects import make_project as make_toy_project
from support.projects import truth


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


def test_live_questions_over_http_are_those_of_the_simulated_person(tmp_path: Path) -> None:
    with make_toy_project(tmp_path, n_classes=None) as project:
        folder, names, (rows, places) = (
            project.folder,
            [truth(path) for path in project.paths],
            project.labels().learned(),
        )
        numbers = {info.name: place for place, info in enumerate(project.labels().registry.infos)}
        x = frozen_features(row_features(project, n_views=1), np.arange(project.n_rows))
    y_class = np.full(len(names), -1)
    y_class[rows] = places
    asking = Asking(live_neighbours(x), y_class)
    with served(folder) as (address, secret):
        annotator = Annotator(address, secret, names.__getitem__)
        annotator.call("/api/v1/job", {"kind": "start"})
        while not annotator.call("/api/v1/state")["is_live"]:
            time.sleep(0.05)
        annotator.call("/api/v1/job", method="DELETE")  # training would exchange the features
        for number in range(25):
            card = annotator.question(live=True)
            row, is_drawn = asking.question(number)
            assert (card["row"], card["is_drawn"]) == (row, is_drawn)
            annotator.label([row], names[row])
            asking.tell(row, numbers.setdefault(names[row], len(numbers)))
