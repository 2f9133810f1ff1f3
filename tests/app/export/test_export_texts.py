"""Texts and records leave a project in every format, safely, and come back; its classifier names what it named."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from agcd.app.answers import Answer, write_answers
from agcd.app.export.classifier import (
    EmbeddingClassifier,
    NamedSlot,
    TextClassifier,
    load_classifier,
    vector_classifier_of_run,
    write_classifier,
)
from agcd.app.export.files import export_all, export_file, light_files, tell_label_studio
from agcd.app.export.folders import MANIFEST, UNNAMED, sort_into_folders
from agcd.app.export.row_tables import prediction_table
from agcd.app.export.safe_names import safe_place_name
from agcd.app.model import predict, row_features, train
from agcd.app.project import Project
from agcd.app.store.events import new_uid
from agcd.cli import app
from agcd.config import BackboneConfig
from agcd.data.tables import plain, read_table, write_table
from agcd.data.text_items import TextItem
from agcd.data.texts import read_texts
from agcd.errors import AgcdError, ConfigError, DataError, WeightsError
from agcd.features.onnx_graph import has_onnx
from agcd.features.text_encoders import ENCODERS
from agcd.run_files import MODEL
from support.servers import serving
from support.text_projects import DIM, HOSTILE, N_TEXTS, make_record_project, make_text_project, vectors

PICTURES_ONLY = {"labels.coco.json", "labels.fiftyone.json"}
MODEL_FILES = {"model.safetensors", "model.json", "MODEL_CARD.md"}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained project of texts in which somebody answered, with a name that would run as a formula."""
    folder = tmp_path_factory.mktemp("texts")
    with make_text_project(folder) as project:
        train(project)
        rows = [row for row, text in enumerate(project.contents()) if text in HOSTILE]
        said = ["=cmd|calc", "junk", "skip", "card", "unsure"]
        write_answers(project, [Answer(row, word) for row, word in zip(rows, said, strict=True)], who="bob")
    return folder / "project"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    with make_record_project(folder) as project:
        train(project)
    return folder / "records"


@pytest.fixture(scope="module")
def exported(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported")
    with Project.open(texts) as project:
        export_all(project, out, onnx=has_onnx())
    return out


def csv_lines(project: Project, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export_file(project, name).decode(), newline="")))


def run(*words: object, **given: Any) -> Any:
    done = CliRunner().invoke(app, [str(word) for word in words], **given)
    assert done.exit_code == 0, done.output
    return done


# -------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("table", ["labels", "predictions"])
def test_a_text_stands_beside_its_path_in_every_format(texts: Path, table: str) -> None:
    with Project.open(texts) as project:
        parquet = pq.read_table(io.BytesIO(export_file(project, f"{table}.parquet"))).to_pylist()
        jsonl = [json.loads(line) for line in export_file(project, f"{table}.jsonl").splitlines()]
        lines, contents = csv_lines(project, f"{table}.csv"), project.contents()
    assert jsonl == parquet
    assert list(parquet[0])[:3] == ["row", "path", "text"]
    assert [line["text"] for line in parquet] == [contents[line["row"]] for line in parquet]
    assert [plain(line["text"]) for line in lines] == [line["text"] for line in parquet]
    assert {text for text in HOSTILE if text != HOSTILE[1]} <= {line["text"] for line in parquet}
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line.values())


def test_labels_are_a_table_of_texts_that_can_be_read_again(texts: Path, tmp_path: Path) -> None:
    with Project.open(texts) as project:
        content = export_file(project, "labels.csv")
        table = [json.loads(line) for line in export_file(project, "labels.jsonl").splitlines()]
    (tmp_path / "labels.csv").write_bytes(content)
    dataset = read_texts(tmp_path / "labels.csv").dataset
    names = [dataset.classes[c] if c >= 0 else None for c in dataset.y_class.tolist()]
    assert list(zip(dataset.texts or (), names, strict=True)) == [(line["text"], line["class"]) for line in table]


def test_records_bring_their_cells(records: Path) -> None:
    with Project.open(records) as project:
        lines = [json.loads(line) for line in export_file(project, "predictions.jsonl").splitlines()]
        tasks = json.loads(export_file(project, "labels.label-studio.json"))
        assert not any(line["cells"].startswith("=") for line in csv_lines(project, "predictions.csv"))
    assert list(lines[0])[:4] == ["row", "path", "text", "cells"]
    assert json.loads(lines[4]["cells"]) == {"height": "4", "note": "=1+1"}
    assert tasks[4]["data"]["text"] == "a tree called ash · height: 4 · note: =1+1"


def test_only_pictures_have_files_of_pictures(texts: Path, exported: Path) -> None:
    with Project.open(texts) as project:
        offered = set(light_files(project.kind))
        assert set(light_files()) - offered == PICTURES_ONLY
        for name in PICTURES_ONLY:
            with pytest.raises(DataError, match=f"^{name} lists picture files, and texts are none: take labels.jsonl"):
                export_file(project, name)
    made = {path.name for path in exported.iterdir()}
    assert made == offered | MODEL_FILES | ({"model.onnx"} if has_onnx() else set())


def test_the_page_offers_what_there_is_and_sorts_texts(texts: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(texts, tmp_path / "project"))
    with serving(folder) as client:
        offered = client.get("/api/v1/export")
        assert set(offered) == set(light_files()) - PICTURES_ONLY
        assert "texts are none" in client.get("/api/v1/export/labels.coco.json", 409)["error"]
        client.get("/api/v1/export/labels.cocoa.json", 404)
        told = {}
        for how in ("link", "copy"):
            client.post("/api/v1/folders", {"uid": new_uid(), "how": how})
            for thread in threading.enumerate():
                if thread.name == "sort":
                    thread.join(30)
            told[how] = client.get("/api/v1/folders")
    assert (told["link"]["state"], told["copy"]["state"]) == ("failed", "done")
    assert told["link"]["error"].startswith("Texts are no files that a link could lead to")
    assert "texts in" in told["copy"]["sentence"]
    assert len(files(folder / "sorted")) == N_TEXTS


def test_questions_show_their_texts_and_take_answers_back(texts: Path, tmp_path: Path) -> None:
    folder, table = shutil.copytree(texts, tmp_path / "project"), tmp_path / "q.csv"
    run("query", folder, "-n", 4, "--out", table)
    lines = [cells for _, cells in read_table(table, ("row", "path", "text", "why", "label"))]
    with Project.open(folder) as project:
        assert [line["text"] for line in lines] == [project.contents()[int(line["row"])] for line in lines]
    write_table(table, {name: [line[name] or "refund" for line in lines] for name in lines[0]})
    assert "4 label" in run("label", folder, "--from", table).stdout


# -------------------------------------------------------------------------------------------------- Label Studio


def test_label_studio_shows_texts_as_they_stand(texts: Path) -> None:
    with Project.open(texts) as project:
        tasks = json.loads(export_file(project, "labels.label-studio.json"))
        root = ElementTree.fromstring(export_file(project, "label-studio-config.xml"))
        assert [task["data"]["text"] for task in tasks] == list(project.contents())
        assert [task["data"]["path"] for task in tasks] == list(project.paths)
    assert [child.tag for child in root] == ["Text", "Choices", "TextArea"]
    assert {child.get("toName") for child in root[1:]} == {root[0].get("name")} == {"text"}
    assert (root[0].get("value"), root[0].get("valueType")) == ("$text", "text")
    choices = [result for task in tasks for part in task.get("annotations", []) for result in part["result"]]
    assert {result["to_name"] for result in choices} == {"text"}
    assert not any("image" in task["data"] for task in tasks)


def test_answers_go_out_to_label_studio_and_come_back(texts: Path, tmp_path: Path) -> None:
    with Project.open(texts) as project:
        content, labels = export_file(project, "labels.label-studio.json"), csv_lines(project, "labels.csv")
    file = tmp_path / "back.json"
    file.write_bytes(content)
    with make_text_project(tmp_path, "again") as again:
        told = tell_label_studio(again, file)
        assert told["bob"].counts == {"label": 2, "junk": 1, "skip": 1, "unsure": 1}
        back = csv_lines(again, "labels.csv")
        ours = [(line["row"], line["text"], line["class"], line["answer"], line["who"]) for line in labels]
        assert ours == [(line["row"], line["text"], line["class"], line["answer"], line["who"]) for line in back]
        tasks = json.loads(content)
        tasks[0]["data"]["path"] = "gone"
        file.write_text(json.dumps(tasks))
        with pytest.raises(DataError, match="1 text with answers, not in this project: 'gone'"):
            tell_label_studio(again, file)


def test_a_file_of_all_texts_needs_no_query_per_text(texts: Path) -> None:
    with Project.open(texts) as project:
        statements: list[str] = []
        project.store.connection.set_trace_callback(statements.append)
        for name in light_files(project.kind):
            export_file(project, name)
        project.store.connection.set_trace_callback(None)
    assert len([one for one in statements if "contents" in one]) == 1
    assert len(statements) < N_TEXTS


# ---------------------------------------------------------------------------------------------------- classifier


def test_the_exported_classifier_names_texts_as_the_project_does(texts: Path, exported: Path) -> None:
    classifier = load_classifier(exported)
    assert isinstance(classifier, TextClassifier)
    with Project.open(texts) as project:
        table = prediction_table(project, project.snapshot())
        x = row_features(project).read(np.array(table["row"]), np.zeros(len(table["row"]), np.int64))
    probabilities = classifier.of_texts(table["text"])
    assert probabilities.argmax(1).tolist() == table["slot"]
    np.testing.assert_allclose(probabilities.max(1).values, table["probability"], atol=0.01)
    np.testing.assert_allclose(classifier(x).max(1).values, table["probability"], atol=1e-5)


def test_the_facts_say_how_a_text_becomes_a_vector(exported: Path) -> None:
    facts = json.loads((exported / "model.json").read_text())
    assert (facts["format"], facts["input"], facts["dim"]) == (3, "text", 384)
    assert (facts["encoder"]["name"], facts["encoder"]["max_tokens"]) == ("minilm", 256)
    assert len(facts["encoder"]["weights_sha256"]) == 64
    assert any("windows of at most 256 tokens" in step for step in facts["preprocessing"]["steps"])
    assert "backbone" not in facts


def test_the_onnx_file_is_the_head_alone(texts: Path, exported: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(exported / "model.onnx", providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape) == ("embedding", "tensor(float)", ["n", 384])
    classifier = load_classifier(exported)
    x = classifier.encoder()(["my card was declined", "what is the rate"])
    probabilities, names = session.run(["probabilities", "class"], {"embedding": x})
    expected = classifier(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)
    assert names.tolist() == [classifier.slots[slot].name for slot in expected.argmax(1)]
    facts = session.get_modelmeta().custom_metadata_map
    assert (facts["agcd.encoder"], facts["agcd.format"]) == ("minilm", "3")


def test_a_classifier_of_given_embeddings_has_no_encoder(records: Path, tmp_path: Path) -> None:
    with Project.open(records) as project:
        export_all(project, tmp_path)
        table = prediction_table(project, project.snapshot())
    classifier = load_classifier(tmp_path)
    assert type(classifier) is EmbeddingClassifier
    probabilities = classifier(torch.from_numpy(vectors()[table["row"]]))
    np.testing.assert_allclose(probabilities.max(1).values, table["probability"], atol=1e-5)
    facts = json.loads((tmp_path / "model.json").read_text())
    assert (facts["input"], facts["dim"]) == ("embedding", DIM)
    assert not {"encoder", "backbone"} & set(facts)


class Plain:
    """An encoder of another package, which says nothing about itself but what it must."""

    name, fingerprint, dim = "plain", "b2-plain", 384

    def __call__(self, texts: Sequence[str]) -> Any:
        return np.full((len(texts), self.dim), len(texts[0]), np.float32)


def test_an_encoder_of_another_package_is_described_by_its_name(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENCODERS.built_in, "plain", lambda weights: Plain())
    with Project.open(texts) as project:
        model = project.run_folder(0) / MODEL
        slots = [NamedSlot(name, not is_new) for name, is_new in project.snapshot().slot_names]
    classifier = vector_classifier_of_run(model, BackboneConfig(name="plain"), slots)
    write_classifier(tmp_path, classifier)
    facts = json.loads((tmp_path / "model.json").read_text())
    assert facts["encoder"] == dict.fromkeys(("weights", "weights_sha256", "max_tokens")) | {
        "name": "plain",
        "fingerprint": "b2-plain",
    }
    assert facts["preprocessing"]["steps"][1:] == ["the encoder of this name and fingerprint"]
    expected = classifier(torch.full((1, 384), 6.0))
    torch.testing.assert_close(load_classifier(tmp_path).of_texts(["a text "]), expected)


def exec_usage(folder: Path, monkeypatch: pytest.MonkeyPatch, **words: str) -> None:
    """The first program of a model card, from its folder, with other words in it."""
    program = (folder / "MODEL_CARD.md").read_text(encoding="utf-8").split("```python")[1].partition("```")[0]
    for before, after in words.items():
        assert before in program
        program = program.replace(before, after)
    monkeypatch.chdir(folder)
    exec(program, {})


def test_the_model_card_speaks_of_texts_and_its_program_runs(
    texts: Path, exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = (exported / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "which of 3 classes a text belongs to" in card
    assert "Encoder: `minilm`" in card
    for wrong in ("picture", "pixel", "timm", "Backbone", "bob", str(texts.parent)):
        assert wrong not in card
    exec_usage(exported, monkeypatch, **{"a text": "my card was declined in the shop"})
    assert capsys.readouterr().out.startswith("card 0.")


def test_the_model_card_of_records_runs_too(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Project.open(records) as project:
        export_all(project, tmp_path)
    card = (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "a record belongs to: 3 were known from the start, 0 were found in records without labels. It takes " in card
    assert f"embeddings of {DIM} numbers" in card
    assert "picture" not in card
    np.save(tmp_path / "embeddings.npy", vectors())
    exec_usage(tmp_path, monkeypatch)
    assert capsys.readouterr().out.startswith("ash ")


DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another input": (lambda facts: facts.update(input="sound"), "does not describe a classifier"),
    "an input that is none": (lambda facts: facts.update(input=[]), "does not describe a classifier"),
    "no encoder": (lambda facts: facts.pop("encoder"), "does not describe a classifier"),
    "an encoder that is none": (lambda facts: facts.update(encoder="minilm"), "does not describe a classifier"),
    "an unknown encoder": (lambda facts: facts["encoder"].update(name="minilmm"), "Unknown encoder"),
    "other weights": (lambda facts: facts["encoder"].update(fingerprint="b2-0"), "another version of the encoder"),
    "no fingerprint": (lambda facts: facts["encoder"].update(fingerprint=None), "another version of the encoder"),
    "weights elsewhere": (lambda facts: facts["encoder"].update(weights="mine"), "put that folder into"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_facts_are_one_sentence(name: str, exported: Path, tmp_path: Path) -> None:
    facts = json.loads((exported / "model.json").read_text())
    damage, piece = DAMAGE[name]
    damage(facts)
    shutil.copy(exported / "model.safetensors", tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(facts))
    with pytest.raises(AgcdError, match=piece) as refused:
        load_classifier(tmp_path).of_texts(["a text"])
    assert "\n" not in str(refused.value)


def test_a_text_that_cannot_be_used_is_told(exported: Path) -> None:
    with pytest.raises(DataError, match="row 1 is empty"):
        load_classifier(exported).of_texts(["a text", " \n"])


def test_weights_of_another_size_are_refused(records: Path, exported: Path, tmp_path: Path) -> None:
    with Project.open(records) as project:
        export_all(project, tmp_path)
    facts = json.loads((exported / "model.json").read_text())
    own = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(own | {"input": "text", "encoder": facts["encoder"]}))
    with pytest.raises(WeightsError, match="another version of the encoder"):
        load_classifier(tmp_path).of_texts(["a text"])


# ------------------------------------------------------------------------------------------------------- predict


def test_new_texts_are_named_from_tables_files_folders_and_the_standard_input(texts: Path, tmp_path: Path) -> None:
    with Project.open(texts) as project:
        table = prediction_table(project, project.snapshot())
    sentences, slots = table["text"][:6], table["slot"][:6]
    (tmp_path / "lines.txt").write_text("\n".join(sentences) + "\n\n", encoding="utf-8")
    (tmp_path / "new.csv").write_text("text\n" + "\n".join(f'"{text}"' for text in sentences), encoding="utf-8")
    for number, text in enumerate([*sentences, " "]):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / f"{number}.txt").write_text(text, encoding="utf-8")
    with Project.open(texts) as project:
        found = {name: predict(project, [tmp_path / name]) for name in ("lines.txt", "new.csv", "folder")}
        both = predict(project, [tmp_path / "lines.txt", tmp_path / "folder", TextItem("line 1", sentences[0])])
    for name, first in (("lines.txt", "lines.txt:1"), ("new.csv", "new.csv:2"), ("folder", "0.txt")):
        assert list(found[name]) == [
            *("path", "text", "class", "known", "by", "probability", "margin", "slot", "problem"),
        ]
        assert found[name]["path"][0] == first
        assert found[name]["text"][:6] == sentences
        assert found[name]["slot"][:6] == slots
    assert (found["folder"]["path"][-1], found["folder"]["text"][-1]) == ("6.txt", None)
    assert found["folder"]["problem"][-1] == "empty: there is nothing to read"
    assert both["path"][0] == f"{tmp_path / 'lines.txt'}:1"
    assert both["path"][6] == str(tmp_path / "folder" / "0.txt")
    assert both["path"][12] == "line 1"
    typed = "\n".join([sentences[0], "", "=1+1", "bad \udcff".encode("utf-8", "surrogateescape").decode("latin-1")])
    done = run("predict", texts, "-", "--format", "jsonl", input=typed)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["path"] for line in lines] == ["line 1", "line 3", "line 4"]
    assert (lines[0]["slot"], lines[0]["text"]) == (slots[0], sentences[0])
    told = json.loads(run("predict", texts, "-", "-0", "--json", input=f"{sentences[0]}\0two\nlines\0").stdout)
    assert (told["n_texts"], told["texts"][1]["text"]) == (2, "two\nlines")
    assert run("predict", texts, "-", input="=1+1\n").stdout.splitlines()[1].startswith("line 1,'=1+1,")


def test_embeddings_are_named_where_the_project_was_given_some(records: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "new.npy", vectors())
    np.savez(tmp_path / "new.npz", x=vectors()[:2], ids=np.array(["a", "b"]))
    with Project.open(records) as project:
        expected = prediction_table(project, project.snapshot())
        found = predict(project, [tmp_path / "new.npy"])
        both = predict(project, [tmp_path / "new.npz", tmp_path / "new.npy"])
    assert list(found) == ["path", "class", "known", "by", "probability", "margin", "slot", "problem"]
    assert found["path"][:2] == ["row 0", "row 1"]
    assert found["slot"] == expected["slot"]
    np.testing.assert_allclose(found["probability"], expected["probability"], atol=1e-5)
    assert both["path"][1:3] == [f"{tmp_path / 'new.npz'}:b", f"{tmp_path / 'new.npy'}:row 0"]


def test_what_cannot_be_named_is_one_sentence(texts: Path, records: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((2, 3), np.float32))
    (tmp_path / "new.txt").write_text("a text\n")
    refused = {
        (records, tmp_path / "new.txt"): "this project stands on embeddings that were given with its records",
        (records, tmp_path / "wide.npy"): f"vectors of 3 numbers, those of the project have {DIM}",
        (records, tmp_path): "so give those of the new ones, in an .npy, .npz or .parquet file",
        (texts, tmp_path / "wide.npy"): "cannot be read as texts",
        (texts, tmp_path / "gone.csv"): "There is nothing to read",
    }
    for (folder, place), piece in refused.items():
        with Project.open(folder) as project, pytest.raises(DataError, match=piece) as told:
            predict(project, [place])
        assert "\n" not in str(told.value)
    for words, given, piece in ((["-"], "\n \n", "holds no text"), (["new.txt", "-0"], "", "-0 is about texts")):
        done = CliRunner().invoke(app, ["predict", str(texts), *words], input=given)
        assert piece in str(done.exception)


# ---------------------------------------------------------------------------------------------------------- sort


def files(out: Path) -> set[str]:
    found = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    return {name for name in found if name != MANIFEST and not name.startswith(".sorted")}


def test_texts_are_sorted_into_a_file_each_and_follow_new_answers(texts: Path, tmp_path: Path) -> None:
    shutil.copytree(texts, tmp_path / "project")
    out = tmp_path / "out"
    with Project.open(tmp_path / "project") as project:
        done = sort_into_folders(project, out)
        assert (done.n_named + done.n_unnamed, done.n_junk, done.n_missing) == (N_TEXTS - 1, 1, 0)
        assert done.sentence().startswith(f"{done.n_named} texts in ")
        lines = {line["path"]: line for _, line in read_table(out / MANIFEST, ("file", "path", "class"))}
        assert {line["file"] for line in lines.values()} == files(out)
        for path, text in zip(project.paths, project.contents(), strict=True):
            assert (out / lines[path]["file"]).read_text(encoding="utf-8") == f"{text}\n"
        assert lines["card/0"]["file"] == "card/card_0.txt"
        assert lines["=odd 0"]["file"] == "=cmd_calc/=odd 0.txt"
        before = {name: (out / name).stat().st_ino for name in files(out)}
        assert sort_into_folders(project, out) == done
        assert {name: (out / name).stat().st_ino for name in files(out)} == before
        row = project.paths.index("card/5")
        write_answers(project, [Answer(row, "rate")])
        (out / "pin" / "pin_0.txt").unlink()
        sort_into_folders(project, out)
        moved = before[lines["card/5"]["file"]]
        assert (out / "rate" / "card_5.txt").stat().st_ino == moved, "the file that was there is moved"
        assert (out / "pin" / "pin_0.txt").is_file()
        assert not (out / lines["card/5"]["file"]).exists()
    dataset = read_texts(out).dataset
    assert {*dataset.classes} >= {"card", "pin", "rate"}


def test_a_folder_of_sorted_texts_is_a_source_of_texts(texts: Path, tmp_path: Path) -> None:
    with Project.open(texts) as project:
        sort_into_folders(project, tmp_path / "out", only_checked=True)
        said = {project.paths[row]: event for row, event in project.labels().answers()}
    dataset = read_texts(tmp_path / "out").dataset
    n_junk = sum(event.kind == "junk" for event in said.values())
    assert dataset.n_rows == sum(event.kind == "label" for event in said.values()) + n_junk


def test_records_become_json_files(records: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Project.open(records) as project:
        sort_into_folders(project, out)
    assert all(name.endswith(".json") for name in files(out))
    record = json.loads((out / "ash" / "ash-0.json").read_text(encoding="utf-8"))
    assert record == {"cells": {"height": "0", "note": "<i>ash</i>"}, "text": "a tree called ash"}
    assert not any(name.startswith(UNNAMED) for name in files(out)) or len(files(out)) == 40


@pytest.mark.parametrize("how", ["link", "symlink"])
def test_no_link_leads_to_a_text(texts: Path, tmp_path: Path, how: Any) -> None:
    with Project.open(texts) as project, pytest.raises(ConfigError, match=r"^Texts are no files .* --how copy\.$"):
        sort_into_folders(project, tmp_path / "out", how)
    assert not (tmp_path / "out").exists()


def test_the_command_says_texts(texts: Path, tmp_path: Path) -> None:
    done = run("sort", texts, tmp_path / "out", "--only-checked", "--json")
    told = json.loads(done.stdout)
    assert told["sentence"] == f"11 texts in 4 classes, 1 junk: {tmp_path / 'out'}."
    refused = CliRunner().invoke(app, ["sort", str(texts), str(tmp_path / "out"), "--how", "move"])
    assert str(refused.exception) == "Texts cannot be sorted by 'move'. Allowed: copy, link, symlink."


def test_sorted_files_never_lie_among_the_texts_of_a_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "texts" / name).mkdir(parents=True)
        for number in range(3):
            (tmp_path / "texts" / name / f"{number}.txt").write_text(f"{name} {number}")
    with Project.create(tmp_path / "project", tmp_path / "texts", n_classes=2, kind="text") as project:
        with pytest.raises(DataError, match=r"the texts in .* lie in one another"):
            sort_into_folders(project, tmp_path / "texts" / "sorted")
        assert sort_into_folders(project, tmp_path / "out").n_named == 6
    assert (tmp_path / "out" / "a" / "0.txt").read_text() == "a 0\n"


NAMES = {
    "a/b/1.txt": "1.txt",
    "table.csv:17": "table.csv_17.txt",
    "../../etc/passwd": "_._.._etc_passwd.txt",
    ".txt": "_.txt",
    "con": "_con.txt",
    "x" * 500: "x" * 150 + ".txt",
    "": "_.txt",
}


@pytest.mark.parametrize("place", NAMES)
def test_where_a_text_is_from_becomes_a_safe_name(place: str) -> None:
    stem, ending = safe_place_name(place, ".txt")
    assert stem + ending == NAMES[place]
    assert os.path.basename(stem + ending) == stem + ending
