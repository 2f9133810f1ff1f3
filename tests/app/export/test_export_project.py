"""A project hands out everything it knows, in formats that other programs read, and takes answers back."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from agcd.app.answers import Answer, write_answers
from agcd.app.export.classifier import load_classifier, preprocess
from agcd.app.export.coco import to_coco
from agcd.app.export.fiftyone import to_fiftyone
from agcd.app.export.files import export_all, export_file, light_files, tell_label_studio
from agcd.app.figures import figures_of
from agcd.app.model import train
from agcd.app.project import Project
from agcd.app.status import status_of
from agcd.app.store.events import LabelEvent
from agcd.data.tables import plain
from agcd.errors import ConfigError, DataError
from agcd.features.onnx_graph import has_onnx
from support.projects import N_IMAGES, answer_all, make_project, predictions

TABLES = {f"{table}.{kind}" for table in ("labels", "predictions") for kind in ("csv", "jsonl", "parquet")}
OTHERS = {"labels.coco.json", "labels.fiftyone.json", "labels.label-studio.json", "label-studio-config.xml"}
OTHERS |= {"model.safetensors", "model.json", "MODEL_CARD.md"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two rounds, a class that would run as a formula, and one image thrown out."""
    folder = tmp_path_factory.mktemp("trained")
    with make_project(folder) as project:
        train(project)
        answer_all(project)
        pool = project.label_state()[0].pool_rows.tolist()
        write_answers(project, [Answer(pool[0], "junk"), Answer(pool[1], "=cmd|calc")], who="bob")
        train(project)
    return folder / "project"


def accept(project: Project, row: int, name: str, **values: Any) -> LabelEvent:
    info = project.labels().registry.find(name)
    assert info is not None
    event = LabelEvent("accept", "ann", "human", row=row, class_id=info.id, **values)
    return project.store.append([event])[0]


def said(project: Project, row: int) -> tuple[str, str]:
    table = predictions(project)
    place = table["row"].index(row)
    return table["class"][place], table["by"][place]


def test_everything_is_written_and_nothing_else(trained: Path, tmp_path: Path) -> None:
    with Project.open(trained) as project:
        files = export_all(project, tmp_path / "out", onnx=False)
        assert {path.name for path in files} == {path.name for path in (tmp_path / "out").iterdir()} == TABLES | OTHERS
        for name in light_files():
            content = (tmp_path / "out" / name).read_bytes()
            assert content == export_file(project, name), name
            assert str(trained.parent).encode() not in content, name
        assert pq.read_table(tmp_path / "out" / "predictions.parquet").to_pydict() == predictions(project)


def test_tables_say_the_same_in_every_format_with_the_same_columns(trained: Path) -> None:
    shared = ("row", "path", "split", "class", "known")
    with Project.open(trained) as project:
        for table in ("labels", "predictions"):
            parquet = pq.read_table(io.BytesIO(export_file(project, f"{table}.parquet"))).to_pylist()
            jsonl = [json.loads(line) for line in export_file(project, f"{table}.jsonl").splitlines()]
            assert jsonl == parquet
            assert tuple(parquet[0])[:5] == shared
            lines = list(csv.DictReader(io.StringIO(export_file(project, f"{table}.csv").decode(), newline="")))
            for line, row in zip(lines, parquet, strict=True):
                assert {name: plain(cell) for name, cell in line.items()} == {name: spoken(row[name]) for name in row}
        labels, predicted = (
            {line["row"]: line for line in map(json.loads, export_file(project, f"{table}.jsonl").splitlines())}
            for table in ("labels", "predictions")
        )
        both = [row for row, line in labels.items() if line["answer"] == "label"]
        assert len(both) > 9
        for row in both:
            assert all(labels[row][name] == predicted[row][name] for name in shared)


def spoken(value: Any) -> str:
    """A value as CSV has it."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_fiftyone_finds_every_image_by_its_path_without_the_ending(trained: Path) -> None:
    with Project.open(trained) as project:
        value = json.loads(export_file(project, "labels.fiftyone.json"))
        labels = dict(zip(*csv_columns(project, "path", "class"), strict=True))
        paths = project.paths
    assert set(value) == {"classes", "labels"}
    assert list(value["labels"]) == [path.removesuffix(".png") for path in paths]
    for path in paths:
        number = value["labels"][path.removesuffix(".png")]
        assert (value["classes"][number] if number is not None else "") == labels.get(path, "").removeprefix("'")


def test_fiftyone_leaves_out_what_it_could_not_tell_apart() -> None:
    labels: dict[str, list[Any]] = {"row": [0, 2, 3], "class": ["kite", "owl", None]}
    value = to_fiftyone(dict(enumerate(["a/1.jpg", "a/1.png", "b/1.jpg", "c.d/2.jpg"])), labels, ["owl", "kite"])
    assert value == {"classes": ["owl", "kite"], "labels": {"b/1": 0, "c.d/2": None}}


def test_the_model_card_tells_what_the_project_knows_and_nothing_private(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Project.open(trained) as project:
        export_all(project, tmp_path / "out", onnx=False)
        card = (tmp_path / "out" / "MODEL_CARD.md").read_text(encoding="utf-8")
        status, figures, table = status_of(project), figures_of(project.snapshot()), predictions(project)
        model_id = json.loads((tmp_path / "out" / "model.json").read_text())["model_id"]
        slots = [name for name, _ in project.snapshot().slot_names]
        learned = {name for name in slots if not name.startswith("unnamed #")}
    assert figures is not None
    assert figures.headline in card
    assert model_id in card
    assert f"{len(learned)} classes a picture belongs to: 3 were known from the start" in card
    missing = {found.name for found in status.classes} - learned
    assert f"Classes that it has no output for: {', '.join(missing)}.".replace("|", r"\|") in card
    cells = [[cell.strip() for cell in line.split(" | ")] for line in card.splitlines() if line.startswith("| ")][1:]
    assert len(cells) == len(learned) == status.n_classes - 1
    for name, origin, n_labels, n_pictures in cells:
        name, n_pictures = name.removeprefix("| ").replace("\\", ""), n_pictures.removesuffix(" |")
        assert int(n_pictures) == table["class"].count(name)
        known = {table["known"][row] for row, found in enumerate(table["class"]) if found == name}
        assert known <= {origin == "from the start"}
        assert int(n_labels) == {found.name: found.n_labels for found in status.classes}[name]
    assert r"=cmd\|calc" in card, "a name cannot end its cell"
    for private in (str(trained.parent), "bob", "unlabelled/"):
        assert private not in card
    monkeypatch.chdir(tmp_path / "out")
    picture = trained.parent / "images" / table["path"][0]
    exec(card.split("```python")[1].partition("```")[0].replace("a.jpg", str(picture)), {})
    assert capsys.readouterr().out.rsplit(" ", 1)[0] == slots[table["slot"][0]]


def test_the_exported_classifier_says_what_the_predictions_say(trained: Path, tmp_path: Path) -> None:
    with Project.open(trained) as project:
        export_all(project, tmp_path / "out", onnx=False)
        classifier = load_classifier(tmp_path / "out")
        table = predictions(project)
        views = np.stack([preprocess(project.images / path, classifier.image_size) for path in table["path"]])
    probabilities = classifier(torch.from_numpy(views)).numpy()
    assert np.mean(probabilities.argmax(1) == table["slot"]) > 0.95  # the round's own features were kept in float16
    np.testing.assert_allclose(probabilities.max(1), table["probability"], atol=0.02)
    with Project.open(trained) as project:
        assert [(slot.name, not slot.is_old) for slot in classifier.slots] == project.snapshot().slot_names


def test_the_onnx_file_names_the_classes_of_the_project(trained: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    assert has_onnx()
    with Project.open(trained) as project:
        export_all(project, tmp_path, onnx=True)
        names = project.snapshot().slot_names
        table = predictions(project)
        views = np.stack([preprocess(project.images / path, 32) for path in table["path"]])
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    probabilities, slots, classes = session.run(["probabilities", "slot", "class"], {"image": views})
    expected = load_classifier(tmp_path)(torch.from_numpy(views)).numpy()
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)
    assert classes.tolist() == [names[slot][0] for slot in slots]
    assert len(set(classes.tolist())) > 2


def test_without_onnx_installed_nothing_is_written(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with Project.open(trained) as project, pytest.raises(ConfigError, match=r"Install agcd\[onnx\]"):
        export_all(project, tmp_path / "out", onnx=True)
    assert not (tmp_path / "out").exists()


def test_predictions_say_how_certain_each_name_is(trained: Path) -> None:
    with Project.open(trained) as project:
        table, snapshot = predictions(project), project.snapshot()
        expected = snapshot.p_right(np.array(table["row"]))
    np.testing.assert_allclose(table["certainty"], expected, atol=1e-4)
    said = [certainty for certainty, by in zip(table["certainty"], table["by"], strict=True) if by == "human"]
    assert set(said) == {1.0}
    assert min(table["certainty"]) < 1


def test_cells_cannot_run_as_formulas(trained: Path) -> None:
    with Project.open(trained) as project:
        for name in ("labels.csv", "predictions.csv"):
            lines = list(csv.DictReader(io.StringIO(export_file(project, name).decode(), newline="")))
            assert "'=cmd|calc" in {line["class"] for line in lines}
            assert not any(cell.startswith("=") for line in lines for cell in line.values())


def test_light_files_are_made_without_torch(trained: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from agcd.app.project import Project\n"
        "from agcd.app.export.files import export_file, light_files\n"
        "with Project.open(Path(sys.argv[1])) as project:\n"
        "    assert all(export_file(project, name) for name in light_files())\n"
        "assert 'torch' not in sys.modules, 'torch was loaded'"
    )
    done = subprocess.run([sys.executable, "-c", code, trained], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unknown_file_is_one_sentence(trained: Path) -> None:
    with Project.open(trained) as project:
        for name in ("label.csv", "../project.db", "model.safetensors"):
            with pytest.raises(DataError, match="There is no export called"):
                export_file(project, name)


def test_labels_can_be_had_before_the_first_training(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        assert len(export_file(project, "labels.csv").splitlines()) == 1 + 9
        tasks = json.loads(export_file(project, "labels.label-studio.json"))
        assert len(tasks) == N_IMAGES
        assert sum("annotations" in task for task in tasks) == 9
        for call in (
            lambda: export_file(project, "predictions.csv"),
            lambda: export_all(project, tmp_path / "x", onnx=False),
        ):
            with pytest.raises(ConfigError, match="Nothing is trained yet"):
                call()
        assert not (tmp_path / "x").exists()


def test_rows_accepted_by_page_bear_their_class_until_a_person_labels_them(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        row, other = project.label_state()[0].pool_rows[:2].tolist()
        assert said(project, row)[1] == "answers"
        accept(project, row, "green-square")
        last = accept(project, row, "blue-triangle", group="page")
        accept(project, other, "blue-triangle")
        assert said(project, row) == ("blue-triangle", "page")
        project.store.append([LabelEvent("void", "ann", "human", payload={"target": last.uid})])
        assert said(project, row) == ("green-square", "page")
        write_answers(project, [Answer(row, "unsure")])
        assert said(project, row) == ("green-square", "page")
        write_answers(project, [Answer(row, "orange-circle"), Answer(other, "junk")])
        assert said(project, row) == ("orange-circle", "human")
        assert other not in predictions(project)["row"]


def test_accepted_rows_follow_a_merge(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        row = int(project.label_state()[0].pool_rows[0])
        accept(project, row, "green-square")
        source, into = (project.labels().registry.find(name) for name in ("green-square", "blue-triangle"))
        assert source is not None
        assert into is not None
        project.store.append([LabelEvent("merge", "ann", "human", class_id=source.id, payload={"into": into.id})])
        assert said(project, row) == ("blue-triangle", "page")


def test_labels_of_a_blind_audit_are_a_persons(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        train(project)
        row = int(project.label_state()[0].pool_rows[0])
        info = project.labels().registry.find("green-square")
        assert info is not None
        project.store.append(
            [LabelEvent("label", "ann", "human", row=row, class_id=info.id, round=1, payload={"audit": True})]
        )
        assert said(project, row) == ("green-square", "human")


def test_coco_lists_images_classes_and_labels(trained: Path) -> None:
    with Project.open(trained) as project:
        value = json.loads(export_file(project, "labels.coco.json"))
        assert [image["file_name"] for image in value["images"]] == list(project.paths)
        labels = {row: name for row, name in zip(*csv_columns(project, "row", "class"), strict=True) if name}
    assert set(value) == {"info", "licenses", "images", "categories", "annotations"}
    names = {category["id"]: category["name"] for category in value["categories"]}
    found = {str(a["image_id"]): names[a["category_id"]] for a in value["annotations"]}
    assert found == {row: name.removeprefix("'") for row, name in labels.items()}
    kinds = {category["name"]: category["supercategory"] for category in value["categories"]}
    assert (kinds["green-square"], kinds["=cmd|calc"]) == ("known", "found")
    assert {a["attributes"]["who"] for a in value["annotations"]} == {"", "me", "bob"}
    assert len({a["id"] for a in value["annotations"]}) == len(value["annotations"])


def csv_columns(project: Project, *names: str) -> list[list[str]]:
    lines = list(csv.DictReader(io.StringIO(export_file(project, "labels.csv").decode(), newline="")))
    return [[line[name] for line in lines] for name in names]


def test_coco_of_nothing_is_still_coco() -> None:
    labels: dict[str, list[Any]] = {name: [] for name in ("row", "class", "who", "at", "source")}
    value = to_coco({0: "a.jpg"}, labels, [], "nothing yet")
    assert (value["images"], value["annotations"]) == ([{"id": 0, "file_name": "a.jpg"}], [])


def test_label_studio_gives_back_what_it_got(trained: Path, tmp_path: Path) -> None:
    """In the same project it is no news; in a fresh one of the same images every answer arrives."""
    file = tmp_path / "tasks.json"
    with Project.open(trained) as project:
        file.write_bytes(export_file(project, "labels.label-studio.json"))
        before = len(project.store.events())
        assert tell_label_studio(project, file) == {}
        assert len(project.store.events()) == before
        expected = dict(zip(*csv_columns(project, "path", "class"), strict=True))
    with make_project(tmp_path) as fresh:
        told = tell_label_studio(fresh, file, "ann")
        assert set(told) == {"me", "bob"}, "the seeds are known there too"
        assert told["bob"].counts == {"junk": 1, "label": 1}
        assert dict(zip(*csv_columns(fresh, "path", "class"), strict=True)) == expected


def test_answers_from_label_studio_are_stored_for_each_person_all_or_none(tmp_path: Path) -> None:
    with make_project(tmp_path) as project:
        rows = project.label_state()[0].pool_rows[:3].tolist()
        tasks = json.loads(export_file(project, "labels.label-studio.json"))
        value = {"from_name": "class", "type": "choices", "value": {"choices": ["kite"]}}
        for row, annotation in zip(
            rows,
            [
                {"result": [value], "completed_by": {"email": "eve@example.org"}},
                {"result": [], "was_cancelled": True, "completed_by": 7},
                {"result": [{**value, "value": {"choices": ["\x07"]}}], "completed_by": 8},
            ],
            strict=True,
        ):
            tasks[row]["annotations"] = [annotation]
        file, before = tmp_path / "tasks.json", len(project.store.events())
        file.write_text(json.dumps(tasks))
        with pytest.raises(DataError, match="control characters"):
            tell_label_studio(project, file)
        assert len(project.store.events()) == before
        del tasks[rows[2]]["annotations"]
        file.write_text(json.dumps(tasks))
        told = tell_label_studio(project, file)
        assert told["eve@example.org"].new_classes[0].name == "kite"
        assert told["annotator 7"].counts == {"skip": 1}
