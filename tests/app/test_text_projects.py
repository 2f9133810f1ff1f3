"""Projects of texts and of records: made, grown, trained, checked, kept and given back like those of pictures."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from agcd.app.answers import Answer, write_answers
from agcd.app.backup import restore_backup, write_backup
from agcd.app.check import check_project
from agcd.app.export.row_tables import label_table, prediction_table
from agcd.app.growth import add_items, remove_items
from agcd.app.kinds import EXCERPT, KINDS, Shown, kind_named
from agcd.app.model import look_at_new_rows, make_start_view, row_features, train
from agcd.app.project import Project
from agcd.app.status import status_of
from agcd.app.web.server_state import ServerState
from agcd.data.reading import SourceOptions
from agcd.errors import ConfigError, DataError, StorageError
from support.texts import SETTINGS, record_files, sentences, text_project, text_table, truth, write_csv

HOSTILE = ("<script>alert(1)</script>", "=1+1", "a\x00b", "\ud800 half", "x" * 1_000_000, "\u202eevil", "line\nbreak")


def record_project(folder: Path) -> Project:
    table, x = record_files(folder)
    options = SourceOptions(label_column="family")
    project = folder / "project"
    return Project.create(project, table, settings=SETTINGS, options=options, kind="record", embeddings=x)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return text_project(tmp_path)


def test_a_project_of_texts_keeps_them_and_opens_without_its_source(tmp_path: Path, project: Project) -> None:
    (tmp_path / "bank.csv").unlink()
    with Project.open(tmp_path / "project") as again:
        assert list(again.contents()) == [text for text, _ in sentences()]
        assert again.paths[:2] == ("Q0", "Q1")
        data = again.dataset()
        assert (data.texts, data.paths, data.x) == (tuple(again.contents()), None, None)
        assert status_of(again).lines()[0] == "texts    96, 0 of them test; 0 texts set aside"
        assert check_project(again.folder) == []


def test_what_people_said_is_learned_and_leaves_with_the_texts(project: Project) -> None:
    names = truth(project)
    rows = np.flatnonzero(~project.labels().settled)[:24].tolist()
    write_answers(project, [Answer(row, names[row]) for row in rows], "ann", "human")
    train(project)
    predicted = prediction_table(project, project.trained_snapshot())
    right = [said == names[row] for row, said in zip(predicted["row"], predicted["class"], strict=True)]
    assert np.mean(right) > 0.7, "two epochs on forty labels; by chance it would be 0.25"
    assert predicted["text"] == [project.contents()[row] for row in predicted["row"]]
    said = label_table(project, project.snapshot())
    assert said["text"] == [project.contents()[row] for row in said["row"]]


def test_texts_grow_twice_and_only_new_ones_are_computed(tmp_path: Path, project: Project) -> None:
    make_start_view(project, row_features(project, n_views=1))
    before, keys = row_features(project), project.keys
    rows = [
        {"id": "Q1", "text": "My wallet is gone", "label": ""},  # an id that is taken
        {"id": "N2", "text": sentences()[5][0], "label": ""},  # a text that is here
        {"id": "N3", "text": sentences()[70][0], "label": "weather"},  # one that is here and has no answer
        {"id": "N4", "text": "  ", "label": ""},
        {"id": "N5", "text": "Top up by cheque", "label": "top up"},
    ]
    added = add_items(project, [write_csv(tmp_path / "more.csv", rows)])
    assert (added.n_new, added.n_known, added.n_labelled, added.n_named) == (2, 1, 1, 1)
    assert added.set_aside[0].path == "N4"
    assert added.lines()[0] == "2 texts added, 1 labelled by their folder or list"
    assert project.keys[: len(keys)] == keys
    assert project.paths[-2:] == ("Q1 (2)", "N5")
    computed: list[tuple[int, int]] = []
    look_at_new_rows(project, lambda done, total: computed.append((done, total)))
    assert computed == [(2, 2)]
    after = row_features(project)
    assert (before.n_rows, after.n_rows) == (96, 98)
    again = add_items(project, [tmp_path / "more.csv"])
    assert (again.n_new, again.n_named) == (0, 0)
    assert remove_items(project, ["Q1 (2)"]).lines() == ["1 text removed; agcd undo brings them back"]
    assert check_project(project.folder) == []


def test_hostile_texts_are_kept_as_text_or_set_aside(tmp_path: Path) -> None:
    rows = [{"text": text.encode("utf-8", "replace").decode(), "label": ""} for text in HOSTILE]
    project = Project.create(tmp_path / "project", write_csv(tmp_path / "t.csv", rows), kind="text", n_classes=2)
    shown = [project.kind.shown(content).text for content in project.contents()]
    assert shown[:2] == ["<script>alert(1)</script>", "=1+1"]
    assert len(shown[3]) == 20_000
    assert [quarantined.path for quarantined in project.store.quarantine()] == ["t.csv:4"]
    assert not any(char in text for text in shown for char in "\x00\u202e\ud800")
    excerpts = [project.kind.excerpt(content) for content in project.contents()]
    assert max(map(len, excerpts)) == EXCERPT
    assert "\n" not in "".join(excerpts)


def test_a_text_that_was_changed_behind_our_back_is_noticed(project: Project) -> None:
    project.close()
    with sqlite3.connect(project.folder / "project.db") as records:
        records.execute("UPDATE contents SET content = 'Something else' WHERE row = 7")
    records.close()
    with Project.open(project.folder) as again, pytest.raises(StorageError, match="the texts are not what was stored"):
        again.contents()
    assert "not what was stored" in check_project(project.folder)[0].problem


def test_an_excerpt_shows_what_was_searched_for(tmp_path: Path) -> None:
    kind, long = kind_named("text"), f"{'lorem ' * 100}Needle in a haystack {'ipsum ' * 100}"
    assert kind.excerpt_around("a short needle", "NEEDLE") == "a short needle"
    assert "Needle in a haystack" in kind.excerpt_around(long, "needle")
    assert len(kind.excerpt_around(long, "needle")) <= EXCERPT
    assert kind.excerpt_around(long, "nothing like it") == kind.excerpt(long)


# ------------------------------------------------------------------------------------------------------ records


def test_records_are_shown_cell_by_cell_and_learned_from_their_embeddings(tmp_path: Path) -> None:
    with record_project(tmp_path) as project:
        assert project.kind.excerpt(project.contents()[1]).startswith("Mass: ")
        one, two = (project.kind.shown(project.contents()[row]) for row in (0, 1))
        assert dict(one.cells)["link"] == "javascript:alert(1)"
        assert (one.link, two.link) == ("", "https://example.org/1")
        assert "family" not in dict(one.cells), "who answers must not see the class"
        x, given = project.dataset().x, np.load(tmp_path / "x.npz")
        place = {one: number for number, one in enumerate(given["ids"].tolist())}
        assert x is not None
        np.testing.assert_array_equal(x, given["x"][[place[path] for path in project.paths]])
        train(project)
        assert project.metrics(0)["agreement"] == 1.0
        assert project.picture(0) is None
        assert check_project(project.folder) == []


def test_embeddings_come_back_with_a_backup_and_damage_is_noticed(tmp_path: Path) -> None:
    with record_project(tmp_path) as project:
        names = write_backup(project, tmp_path / "b.zip")
        assert "embeddings/000000000.npy" in names
        x = project.dataset().x
    restore_backup(tmp_path / "b.zip", tmp_path / "again")
    with Project.open(tmp_path / "again") as again:
        np.testing.assert_array_equal(again.dataset().x, x)
        file = again.folder / "embeddings" / "000000000.npy"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        with pytest.raises(StorageError, match="its numbers are not those that were stored"):
            again.dataset()
        assert [finding.path for finding in check_project(again.folder)] == [file]


def test_records_grow_with_their_embeddings_alone(tmp_path: Path) -> None:
    with record_project(tmp_path) as project:
        table = write_csv(tmp_path / "new.csv", [{"id": "M900", "Mass": 7, "formula": "X", "url": "", "family": ""}])
        np.save(tmp_path / "new.npy", np.full((1, 8), 2.0, np.float32))
        np.save(tmp_path / "wide.npy", np.zeros((1, 9), np.float32))
        with pytest.raises(DataError, match=r"made with embeddings: give those of one source"):
            add_items(project, [table])
        with pytest.raises(DataError, match="have 9 numbers each; those of the project have 8"):
            add_items(project, [table], embeddings=tmp_path / "wide.npy")
        assert project.n_rows == 48
        assert add_items(project, [table], embeddings=tmp_path / "new.npy").n_new == 1
        x = project.dataset().x
        assert x is not None
        assert x.shape == (49, 8)
        assert x[48].tolist() == [2.0] * 8


def test_pictures_and_texts_may_have_embeddings_of_their_own(tmp_path: Path) -> None:
    table = text_table(tmp_path)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(96, 5)).astype(np.float32))
    with Project.create(tmp_path / "project", table, kind="text", embeddings=tmp_path / "x.npy") as project:
        features = row_features(project)
        assert (features.n_rows, features.dim) == (96, 5)
        assert not (project.folder / "cache" / "features").exists(), "no encoder has run"


def test_records_without_embeddings_are_refused(tmp_path: Path) -> None:
    table, _ = record_files(tmp_path)
    with pytest.raises(ConfigError, match="Records have no features of their own: give them with --embeddings"):
        Project.create(tmp_path / "project", table, kind="record")
    assert not (tmp_path / "project").exists()


# -------------------------------------------------------------------------------------------- every kind of items


@pytest.mark.parametrize("name", sorted(KINDS.built_in))
def test_a_kind_shows_nothing_of_a_row_without_content_but_says_what_it_is(name: str) -> None:
    kind = kind_named(name)
    assert kind.name == name
    assert kind.count(2) == f"2 {kind.nouns}"
    assert kind.columns([]) in ({}, {"text": []}, {"cells": []})
    if name != "record":
        assert (kind.excerpt(""), kind.shown("")) == ("", Shown())


def test_the_kind_in_contributing_is_made_served_and_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r'```python\n("""dna\.py: .*?)```', page, re.DOTALL)
    (tmp_path / "dna.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(0)
    lines = []
    for n in range(40):
        bases = rng.choice(list("ACGT"), 90, p=(0.4, 0.1, 0.1, 0.4) if n % 2 else (0.1, 0.4, 0.4, 0.1))
        lines.append(f">S{n} {('at', 'gc')[n % 2] if n < 8 else ''}\n{''.join(bases[:50])}\n{''.join(bases[50:])}\n")
    (tmp_path / "genes.fasta").write_text("".join(lines), encoding="utf-8")
    settings = {**SETTINGS, "backbone": {"name": "dna:triplets"}, "n_slots": 2}
    source, folder = tmp_path / "genes.fasta", tmp_path / "project"
    Project.create(folder, source, settings=settings, kind="dna:SequenceKind").close()
    with Project.open(folder) as project:
        train(project)
        assert project.metrics(0)["agreement"] == 1.0
        with closing(ServerState(folder)) as server:
            item = server.item(3)
            assert (len(item.text), item.cells[0].value, item.has_picture) == (90, "90", False)
            assert server.seen(3)["text"].startswith("90 bases: ")
        assert prediction_table(project, project.snapshot())["sequence"][0] == project.contents()[0]


def test_an_unknown_kind_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Unknown kind of items 'sound'"):
        Project.create(tmp_path / "project", tmp_path, kind="sound")
