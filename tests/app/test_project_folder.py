"""The project folder: how it is made, what it says of itself, what may be changed or lost."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agcd.app.answers import Answer, write_answers
from agcd.app.create import to_toml
from agcd.app.model import ask, predict, train
from agcd.app.project import Project
from agcd.app.status import ClassCount, status_of
from agcd.errors import AgcdError, ConfigError, DataError
from support.projects import N_IMAGES, SETTINGS, answer_all, make_project, partly_labelled, predictions, true_answers


def test_deleted_runs_and_cache_are_made_again_as_they_were(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        answer_all(project)
        train(project)
        before = predictions(project)
        for name in ("runs", "cache"):
            shutil.rmtree(tmp_path / "project" / name)
        assert [train(project).round, train(project).round] == [0, 1]
        assert not train(project).is_new
        assert predictions(project) == before


def test_settings_may_change_between_rounds_but_not_the_backbone(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        answer_all(project)
    path = tmp_path / "project" / "agcd.toml"
    text = path.read_text()
    path.write_text(text.replace("round_epochs = 2", "round_epochs = 1"))
    with Project.open(tmp_path / "project") as project:
        assert train(project).round == 1
    path.write_text(text.replace("image_size = 32", "image_size = 40"))
    with Project.open(tmp_path / "project") as project, pytest.raises(ConfigError, match=r"backbone\.image_size = 32"):
        ask(project, 1)


def test_init_writes_settings_that_read_back_and_refuses_to_do_it_twice(tmp_path: Path) -> None:
    lines: list[str] = []
    images = partly_labelled(tmp_path)
    with Project.create(tmp_path / "project", images, settings=SETTINGS, say=lines.append) as project:
        assert project.config.n_slots is None  # it is estimated before the first training
    assert lines[0] == "understood: 3 known classes with 9 labels, 41 unlabelled"
    assert "50 images: 9 labelled, 41 unlabelled" in lines
    assert "how many classes there are is found out on the way (--classes sets it)" in lines
    values = tomllib.loads((tmp_path / "project" / "agcd.toml").read_text())
    assert values == {"images": str(images), **SETTINGS, "source": {"class_level": 1}}
    with pytest.raises(DataError, match="is a project already"):
        Project.create(tmp_path / "project", images, settings=SETTINGS)


def test_a_labels_csv_takes_the_place_of_class_folders(tmp_path: Path) -> None:
    images = partly_labelled(tmp_path)
    csv = images / "labels.csv"
    csv.write_text("path;label\nunlabelled/red-circle-00.png;red\ngreen-square/00.png;green\ngreen-square/01.png;\n")
    with Project.create(tmp_path / "project", images, csv, settings=SETTINGS) as project:
        labels = project.label_state()[0]
        assert labels.classes == ("green", "red")
        assert {project.paths[row] for row in labels.labelled_rows} == {
            "green-square/00.png",
            "unlabelled/red-circle-00.png",
        }


def test_test_images_are_kept_out_of_everything(tmp_path: Path) -> None:
    images = partly_labelled(tmp_path)
    (tmp_path / "split").mkdir()
    images.replace(tmp_path / "split" / "train")
    test = tmp_path / "split" / "test" / "green-square"
    test.mkdir(parents=True)
    shutil.copy(tmp_path / "split" / "train" / "green-square" / "00.png", test / "99.png")
    lines: list[str] = []
    with Project.create(tmp_path / "project", tmp_path / "split", None, 5, SETTINGS, lines.append) as project:
        row = project.paths.index("test/green-square/99.png")
        assert project.label_state()[0].held_out[row]
        with pytest.raises(DataError, match="for testing"):
            write_answers(project, [Answer(row, "green-square")])
        train(project)
        table = predictions(project)
        assert table["split"][table["row"].index(row)] == "test"
    assert any("also for testing" in line for line in lines)


def test_images_that_moved_are_one_sentence_and_can_be_found_again(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        (tmp_path / "images").replace(tmp_path / "moved")
        with pytest.raises(DataError, match="set 'images'"):
            train(project)
        assert status_of(project).n_images == N_IMAGES
    path = tmp_path / "project" / "agcd.toml"
    path.write_text(path.read_text().replace(str(tmp_path / "images"), "../moved"))
    with Project.open(tmp_path / "project") as project:
        train(project)


@pytest.mark.parametrize("n_classes", [None, 5])
def test_a_folder_without_any_label_can_be_trained_and_asked_about(tmp_path: Path, n_classes: int | None) -> None:
    images = partly_labelled(tmp_path) / "unlabelled"
    with Project.create(tmp_path / "project", images, n_classes=n_classes, settings=SETTINGS) as project:
        train(project)
        answer_all(project)
        assert train(project).metrics["n_queried"] == 6


def test_status_needs_no_training_and_tells_all(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        status = status_of(project)
        assert (status.n_images, status.n_seeds, status.n_answers, status.n_finished) == (N_IMAGES, 9, 0, 0)
        assert status.classes[0] == ClassCount("blue-triangle", "old", 3)
        train(project)
        query = ask(project, 4)
        write_answers(project, [*true_answers(project, query)[:3], Answer(query.questions[3].row, "skip")])
        status = status_of(project)
        assert (status.n_answers, status.n_passed, status.n_open, status.n_finished) == (3, 1, 0, 1)
        assert any("labels have changed" in line for line in status.lines())
        project.store.begin_run(1)
        assert any("round 1 was begun" in line for line in status_of(project).lines())


def test_every_kind_of_value_survives_toml() -> None:
    values = {"seed": 1, "text": 'a "quoted" \\ é\n', "yes": True, "x": {"rate": 1e-05, "options": {"a b": [1, "2"]}}}
    assert tomllib.loads(to_toml(values)) == values


def test_every_error_of_a_project_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(AgcdError, match="agcd init"):
        Project.open(tmp_path)
    with make_project(tmp_path) as project:
        for call in (ask, predictions, lambda project: predict(project, [tmp_path])):
            with pytest.raises(AgcdError, match="Nothing is trained yet"):
                call(project)
        config = project.config
        project.config = replace_slots(config, None)
        with pytest.raises(ConfigError, match="number of classes yet"):
            _ = project.n_slots
        assert any("not estimated yet" in line for line in status_of(project).lines())


def replace_slots(config: Any, n_slots: int | None) -> Any:
    return config.model_copy(update={"n_slots": n_slots})
