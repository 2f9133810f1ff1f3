"""A practitioner's folder becomes a classifier: init, train, ask, tell, train, predict, export."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from agcd.app.answers import Answer, undo, write_answers
from agcd.app.export.files import export_all
from agcd.app.model import ask, predict, realigned, train
from agcd.app.project import Project
from agcd.app.status import status_of
from agcd.app.store.events import LabelEvent
from agcd.data.sources import from_folder
from agcd.errors import DataError
from agcd.features import open_features
from agcd.io import read_json
from agcd.run_store import NumberedRuns
from agcd.session import Session
from agcd.types import LabelMapping
from support.datasets import labels_as_given
from support.projects import N_IMAGES, answer_all, make_project, predictions, true_answers, truth


def test_the_whole_loop_leaves_predictions_for_every_image(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        assert train(project).round == 0
        query = ask(project, 8)
        assert [question.rank for question in query.questions] == list(range(8))
        told = write_answers(project, true_answers(project, query))
        assert told.counts == {"label": 8}
        done = train(project)
        assert (done.round, done.is_new, done.metrics["n_queried"]) == (1, True, 8)
        table = predictions(project)
        assert table["row"] == list(range(N_IMAGES))
        said = dict(zip(table["row"], zip(table["class"], table["by"], strict=True), strict=True))
        assert {said[q.row] for q in query.questions} == {
            (truth(project.paths[q.row]), "human") for q in query.questions
        }
        assert {by for _, by in said.values()} == {"human", "answers"}
        for name, known in zip(table["class"], table["known"], strict=True):
            assert known == (name in ("blue-triangle", "green-square", "orange-circle"))
        files = export_all(project, tmp_path / "out")
        assert sorted(path.name for path in files) == sorted(p.name for p in (tmp_path / "out").iterdir())
        assert pq.read_table(tmp_path / "out" / "predictions.parquet").to_pydict() == table
        labels = pq.read_table(tmp_path / "out" / "labels.parquet").to_pydict()
        assert len(labels["row"]) == 9 + 8
        assert set(labels["source"]) == {"seed", "import"}


def test_new_images_are_named_and_unusable_ones_have_a_reason(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        (project.images / "unlabelled" / "no.png").write_text("no image")
        table = predict(project, [project.images])
        assert len(table["path"]) == N_IMAGES + 1
        assert (table["path"][-1], table["class"][-1]) == ("unlabelled/no.png", None)
        assert "not an image" in table["problem"][-1]
        ours = dict(zip(predictions(project)["path"], predictions(project)["slot"], strict=True))
        names = project.snapshot().slot_names
        same = [
            name == names[ours[path]][0] for path, name in zip(table["path"][:-1], table["class"][:-1], strict=True)
        ]
        assert np.mean(same) > 0.95  # the store holds float16
        one = predict(project, [project.images / project.paths[0]])
        assert one["path"] == [str(project.images / project.paths[0])]
        with pytest.raises(DataError, match=r"None of the given files is a usable image; .*gone\.png: cannot be"):
            predict(project, [tmp_path / "gone.png"])
        check_several(project, tmp_path / "gone.png")


def check_several(project: Project, gone: Path) -> None:
    """Folders and files may be given together; what is missing has a reason."""
    folders = [project.images / "green-square", project.images / "blue-triangle"]
    (folders[0] / "no.png").write_text("no image")
    file = project.images / project.paths[-1]
    table = predict(project, [*folders, file, gone])
    inside = [str(path) for folder in folders for path in sorted(folder.iterdir()) if path.name != "no.png"]
    assert table["path"] == [*inside, str(file), str(folders[0] / "no.png"), str(gone)]
    assert [problem is None for problem in table["problem"]] == [True] * 7 + [False] * 2
    assert set(table["by"]) == {"model", None}
    alone = {name: column[:3] for name, column in predict(project, [folders[0]]).items()}
    assert alone["path"] == ["00.png", "01.png", "02.png"]
    for name in ("class", "known", "slot"):
        assert alone[name] == table[name][:3]
    for name in ("probability", "margin"):
        np.testing.assert_allclose(alone[name], table[name][:3], atol=1e-5)


def test_reopening_goes_on_as_if_never_closed(tmp_path: Path) -> None:
    make_project(tmp_path).close()
    shutil.copytree(tmp_path / "project", tmp_path / "twin")
    with Project.open(tmp_path / "project") as whole:
        for _ in range(3):
            train(whole)
            answer_all(whole)
        expected = train(whole).metrics
    for _ in range(3):
        with Project.open(tmp_path / "twin") as part:
            train(part)
        with Project.open(tmp_path / "twin") as part:
            query = ask(part, 6)
        with Project.open(tmp_path / "twin") as part:
            assert ask(part, 6) == query
            write_answers(part, true_answers(part, query))
    with Project.open(tmp_path / "twin") as part:
        found = train(part).metrics
    assert {k: v for k, v in found.items() if k != "seconds"} == {k: v for k, v in expected.items() if k != "seconds"}
    for number in range(4):
        keys = [
            read_json(tmp_path / name / "runs" / f"{number:03d}" / "done.json")["key"] for name in ("project", "twin")
        ]
        assert keys[0] == keys[1]


def test_a_project_runs_the_same_rounds_as_a_bare_session(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        dataset = from_folder(project.images)
        features = open_features(dataset, project.config.backbone, tmp_path / "cache")
        session = Session(features, labels_as_given(dataset), project.config, 5, NumberedRuns(tmp_path / "bare"))
        for _ in range(2):
            train(project)
            session.train()
            query, asked = ask(project, 6), session.ask(6)
            rows = np.array([question.row for question in query.questions])
            assert sorted(rows) == sorted(asked.rows)  # the project puts questions about one slot together
            write_answers(project, true_answers(project, query))
            session.tell(rows, [truth(project.paths[row]) for row in rows])
        train(project)
        session.train()
        stored = [read_json(project.run_folder(number) / "done.json")["key"] for number in range(3)]
        assert stored == [done.key for done in session.rounds]


def test_training_twice_without_new_labels_does_nothing(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        assert not train(project).is_new
        row = ask(project, 1).questions[0].row
        write_answers(project, [Answer(row, "skip")])
        assert not train(project).is_new
        write_answers(project, [Answer(row, "a new one")])
        assert train(project).is_new
        assert project.n_finished == 2


def test_labels_that_come_in_during_training_wait_for_the_next_round(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        pool = project.label_state()[0].pool_rows.tolist()

        def answer_meanwhile(line: dict[str, Any]) -> None:
            if line["epoch"] == 0:
                with Project.open(tmp_path / "project") as other:
                    write_answers(other, [Answer(pool[0], "named meanwhile")])

        assert train(project, answer_meanwhile).metrics["n_labels"] == 9
        labels, _ = project.label_state()
        assert labels.n_old == 3
        assert labels.asked_round[pool[0]] == 1
        assert project.snapshot().is_due
        assert train(project).metrics["n_labels"] == 10


def test_questions_may_be_asked_while_answers_wait_for_training(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        first = {question.row for question in ask(project, 5).questions}
        write_answers(project, [Answer(row, f"class {row}") for row in first])
        second = {question.row for question in ask(project, 5).questions}
        assert not first & second


def test_more_names_than_slots_grow_the_head_and_merging_them_back_goes_on(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        rows = [question.row for question in ask(project, 6).questions]
        write_answers(project, [Answer(row, f"class {row}") for row in rows])
        assert train(project).metrics["n_slots"] == 9
        found = [project.labels().registry.find(f"class {row}") for row in rows]
        first, *others = [info.id for info in found if info]
        project.store.append(
            [LabelEvent("merge", "me", "human", class_id=c, payload={"into": first}, group="one") for c in others]
        )
        names = {name for name, _ in project.snapshot().slot_names}
        assert {name for name in names if name.startswith("class ")} == {f"class {rows[0]}"}
        done = train(project)
        assert (done.is_new, done.metrics["n_classes"]) == (True, 4)
        assert undo(project).what.startswith("5 merge")
        assert train(project).metrics["n_classes"] == 9


def test_a_known_class_may_be_merged_into_a_new_one(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        rows = [question.row for question in ask(project, 4).questions]
        write_answers(project, [Answer(row, f"class {row}") for row in rows])
        train(project)
        old, new = (project.labels().registry.find(name) for name in ("green-square", f"class {rows[3]}"))
        assert old is not None
        assert new is not None
        project.store.append([LabelEvent("merge", "me", "human", class_id=old.id, payload={"into": new.id})])
        labels = project.label_state()[0]
        assert labels.n_old == 3
        assert len(labels.seed_rows) == 6
        assert train(project).metrics["n_labels"] == 13
        assert "green-square" not in predictions(project)["class"]


def test_undo_goes_back_step_by_step_and_says_so_at_the_start(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        before = project.label_state()[0]
        rows = before.pool_rows[:3].tolist()
        write_answers(project, [Answer(rows[0], "junk"), Answer(rows[1], "green-square")])
        write_answers(project, [Answer(rows[2], "unsure")])
        assert undo(project).what.startswith("1 unsure by me")
        assert status_of(project).n_answers == 1
        assert undo(project).what.startswith("1 junk, 1 label by me")
        np.testing.assert_array_equal(project.label_state()[0].y_class, before.y_class)
        with pytest.raises(DataError, match="nothing to undo"):
            undo(project)
        assert write_answers(project, [Answer(rows[1], "green-square")]).counts == {"label": 1}


def test_the_same_answers_again_count_once(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        rows = project.label_state()[0].pool_rows[:2].tolist()
        answers = [Answer(rows[0], "Red Kite"), Answer(rows[1], "skip")]
        assert write_answers(project, answers).new_classes[0].name == "Red Kite"
        again = write_answers(project, [Answer(rows[0], " red kite"), Answer(rows[1], "SKIP")])
        assert (again.counts, again.new_classes, again.n_known) == ({}, (), 2)
        assert write_answers(project, answers, who="bob").counts == {"label": 1, "skip": 1}
        assert status_of(project).n_answers == 2
        assert status_of(project).agreement.share == 1.0


def test_labels_before_the_first_training_are_known_from_the_start(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        row = int(project.label_state()[0].pool_rows[0])
        write_answers(project, [Answer(row, "a fourth")])
        labels = project.label_state()[0]
        assert (labels.n_old, labels.asked_round[row]) == (4, 0)
        assert train(project).metrics["n_labels"] == 10


def test_a_retired_class_keeps_its_labels_and_takes_no_more(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        info = project.labels().registry.find("green-square")
        assert info is not None
        before = project.label_state()[0]
        project.store.append([LabelEvent("retire", "me", "human", class_id=info.id)])
        with pytest.raises(DataError, match="is retired"):
            write_answers(project, [Answer(int(before.pool_rows[0]), "green-square")])
        np.testing.assert_array_equal(project.label_state()[0].y_class, before.y_class)


def test_a_refused_answer_stores_nothing_of_its_batch(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        row = int(project.label_state()[0].pool_rows[0])
        n_events = len(project.store.events())
        for bad in (Answer(10**6, "new"), Answer(row, "\x07")):
            with pytest.raises(DataError):
                write_answers(project, [Answer(row, "brand new"), bad])
        assert len(project.store.events()) == n_events


def test_a_mapping_follows_its_classes_when_they_are_renumbered() -> None:
    mapping = LabelMapping(np.array([0, 3, 2]), np.array([True, True, False]), 0.5)
    moved = realigned(mapping, ("a", "b", "c"), ("a", "c", "new", "b"))
    np.testing.assert_array_equal(moved.slot_of_class, [0, 2, -1, 3])
    np.testing.assert_array_equal(moved.observed, [True, False, False, True])


def test_junk_is_left_out_of_predictions_and_of_training(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        row = int(project.label_state()[0].pool_rows[0])
        write_answers(project, [Answer(row, "junk")])
        train(project)
        assert row not in predictions(project)["row"]
        assert row not in {question.row for question in ask(project, 1000).questions}


def test_when_everything_is_answered_there_is_nothing_to_ask(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        write_answers(project, [Answer(row, "unsure") for row in project.label_state()[0].pool_rows.tolist()])
        with pytest.raises(DataError, match="nothing left to ask"):
            ask(project, 1)


def test_undo_finds_a_person_whatever_space_is_around_the_name(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        row = int(project.label_state()[0].pool_rows[0])
        write_answers(project, [Answer(row, "kite")], " ann ")
        assert [event.row for event in undo(project, "ann\t").events if event.row is not None] == [row]
