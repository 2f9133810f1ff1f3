"""A project in one file and back; hostile and damaged files are one sentence and change nothing."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from agcd.app.answers import Answer, write_answers
from agcd.app.backup import MANIFEST, restore_backup, write_backup
from agcd.app.check import check_project
from agcd.app.project import Project
from agcd.errors import AgcdError, ConfigError, DataError
from agcd.io import digest_bytes
from support.damage import DAMAGES, Damage, damage
from support.projects import make_project
from support.servers import trained_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_project(tmp_path_factory.mktemp("backup"))


@pytest.fixture(scope="module")
def backup(project: Path) -> Path:
    out = project.parent / "project.zip"
    with Project.open(project) as opened:
        write_backup(opened, out)
    return out


def state(folder: Path) -> tuple[object, ...]:
    with Project.open(folder) as project:
        return project.store.events(), project.store.rows()[:2], project.n_finished, project.metrics(project.last_round)


def test_a_restored_project_is_the_same(project: Path, backup: Path, tmp_path: Path) -> None:
    lines = restore_backup(backup, tmp_path / "again")
    assert lines == [f"next: agcd serve {tmp_path / 'again'}"]
    assert state(tmp_path / "again") == state(project)
    assert not [found for found in check_project(tmp_path / "again") if found.is_damage]


def test_a_backup_holds_the_answers_of_its_moment_and_is_private(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project, copy)
    with Project.open(copy) as answering, Project.open(copy) as saving:
        before = len(answering.store.events())
        write_answers(answering, [Answer(int(answering.label_state()[0].pool_rows[0]), "kite")], "ann")
        write_backup(saving, tmp_path / "a.zip")
        n_events = len(answering.store.events())
    assert n_events > before
    assert (tmp_path / "a.zip").stat().st_mode & 0o777 == 0o600
    restore_backup(tmp_path / "a.zip", tmp_path / "again")
    with Project.open(tmp_path / "again") as again:
        assert len(again.store.events()) == n_events


def test_a_project_is_replaced_only_when_asked_and_put_aside(project: Path, backup: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    shutil.copytree(project, there)
    with Project.open(there) as opened:
        write_answers(opened, [Answer(int(opened.label_state()[0].pool_rows[0]), "kite")], "ann")
        answered = opened.store.events()
    with pytest.raises(ConfigError, match="--replace"):
        restore_backup(backup, there)
    first = restore_backup(backup, there, replace=True)[0]
    assert state(there) == state(project)
    with Project.open(Path(first.removeprefix("what was there is in "))) as aside:
        assert aside.store.events() == answered
    with pytest.raises(ConfigError, match="exists already"), Project.open(there) as opened:
        write_backup(opened, backup)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_backup_changes_nothing(backup: Path, tmp_path: Path, how: Damage) -> None:
    shutil.copyfile(backup, tmp_path / "bad.zip")
    damage(tmp_path / "bad.zip", how)
    with pytest.raises(AgcdError, match=r"damaged|no file|not a backup"):
        restore_backup(tmp_path / "bad.zip", tmp_path / "again")
    assert not list((tmp_path / "again").iterdir())


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "runs/000/../../evil.json", "runs/000/evil.py", "cache/x.npy", "runs\\evil.json"]
)
def test_a_hostile_backup_writes_nothing_outside(backup: Path, tmp_path: Path, name: str) -> None:
    hostile = tmp_path / "hostile.zip"
    with zipfile.ZipFile(backup) as good, zipfile.ZipFile(hostile, "w") as made:
        facts = json.loads(good.read(MANIFEST))
        for known in facts["files"]:
            made.writestr(known, good.read(known))
        made.writestr(name, b"evil")
        facts["files"][name] = digest_bytes(b"evil")
        made.writestr(MANIFEST, json.dumps(facts))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="list of files"):
        restore_backup(hostile, tmp_path / "again")
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "again"])


def test_a_zip_of_something_else_is_one_sentence(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as made:
        made.writestr("holiday.jpg", b"\xff\xd8")
    with pytest.raises(DataError, match=r"not a backup.*backup\.json"):
        restore_backup(tmp_path / "photos.zip", tmp_path / "again")


def test_missing_images_are_told(tmp_path: Path) -> None:
    with make_project(tmp_path / "one") as project:
        images = project.images
        write_backup(project, tmp_path / "one.zip")
    shutil.move(images, tmp_path / "elsewhere")
    lines = restore_backup(tmp_path / "one.zip", tmp_path / "two")
    assert f"the images are expected in {images}" in lines[0]
