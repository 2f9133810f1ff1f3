"""Single files of a project are damaged: each is noticed, repaired or told in one sentence, and none gives other
results without a word."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from agcd.app.backup import restore_backup, write_backup
from agcd.app.check import check_project, repair
from agcd.app.create import CONFIG, RECORDS
from agcd.app.model import train
from agcd.app.project import Project
from agcd.app.status import status_of
from agcd.errors import AgcdError
from agcd.rng import generator
from support.damage import DAMAGES, Damage, damage
from support.projects import make_project, predictions, work_through
from support.servers import serving

HARMLESS = {"health.json", ".lock", "project.db-last", "project.db-shm", "project.db-wal", "spec.json", "log.jsonl"}
"""Nothing is read from these that could change a result; of a project that is not open, the last three hold nothing."""
PAGES = (
    "state",
    "figures",
    "board",
    "grid",
    "map?round=0",
    "rounds",
    "names",
    "job",
    "question?who=ann&holder=a-browser&live=true",
)
Outcome = dict[str, Any] | str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with three finished rounds, and its backup beside it."""
    folder = tmp_path_factory.mktemp("damage")
    make_project(folder, n_classes=None).close()
    work_through(folder / "project")
    with Project.open(folder / "project") as project:
        write_backup(project, folder / "backup.zip")
    return folder / "project"


@pytest.fixture(scope="module")
def expected(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    copy = tmp_path_factory.mktemp("expected") / "project"
    shutil.copytree(whole, copy)
    assert not check_project(copy)
    return use(copy)


def use(folder: Path) -> Outcome:
    """What a person gets of a project, or the sentence that they are told."""
    try:
        with Project.open(folder) as project:
            train(project)
            found = {
                "events": [event.uid for event in project.store.events()],
                "predictions": predictions(project),
                "metrics": [{**project.metrics(number), "seconds": 0} for number in range(project.n_finished)],
                "names": project.snapshot().names,
                "status": status_of(project, project.snapshot()).lines(),
            }
        walk_through_the_page(folder)
        return found
    except AgcdError as error:
        return str(error)


def walk_through_the_page(folder: Path) -> None:
    with serving(folder) as client:
        for page in PAGES:
            answer = client.http.get(f"/api/v1/{page}")
            assert answer.status_code in (200, 409), (page, answer.text)


def try_one(whole: Path, expected: Outcome, scratch: Path, name: str, how: Damage, seed: int) -> str:
    """Damage one file of a copy; how that ended."""
    told, used = scratch / "told" / "project", scratch / "used" / "project"
    for copy in (told, used):
        shutil.copytree(whole, copy)
        damage(copy / name, how, generator(seed, "damage"))
    case = f"{how} {name} (seed {seed})"
    found = check_project(told)
    about = [finding for finding in found if name in str(finding.path) or str(finding.path) in str(told / name)]
    outcome = use(used)
    is_harmless = Path(name).name in HARMLESS
    if not isinstance(outcome, str):
        # Settings are a person's to change: whether one was meant so, only that person knows. It is told.
        assert outcome == expected or (name == CONFIG and found), f"{case}: other results"
    else:
        assert len(outcome.splitlines()) == 1, f"{case}: told {outcome!r}"
        assert found, f"{case}: told {outcome!r}, and agcd check finds nothing"
    assert about or is_harmless or how == "delete" or outcome == expected, f"{case}: not noticed"
    repair(told, found)
    repaired = use(told)
    if repaired == expected:
        return "repaired" if found else "harmless"
    assert name in (RECORDS, CONFIG), f"{case}: {repaired!r:.300} after the repair"
    restore_backup(whole.parent / "backup.zip", told, replace=True)
    assert use(told) == expected, f"{case}: not restored"
    return "restored"


def files_of(whole: Path) -> list[str]:
    return sorted(path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file())


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_file_is_noticed(whole: Path, expected: Outcome, tmp_path: Path, seed: int) -> None:
    rng, names = generator(seed, "one damage"), files_of(whole)
    try_one(whole, expected, tmp_path, names[rng.integers(len(names))], DAMAGES[seed % len(DAMAGES)], seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_two_hundred_damaged_files_are_noticed(whole: Path, expected: Outcome, tmp_path: Path, part: int) -> None:
    names = files_of(whole)
    for number in range(25):
        seed = 1000 + 25 * part + number
        rng = generator(seed, "damages")
        # Every other one in what cannot be made again: the caches are most of the files.
        chosen = [name for name in names if not name.startswith("cache/")] if number % 2 else names
        scratch = tmp_path / str(number)
        try_one(whole, expected, scratch, chosen[rng.integers(len(chosen))], DAMAGES[number % len(DAMAGES)], seed)
        shutil.rmtree(scratch)
