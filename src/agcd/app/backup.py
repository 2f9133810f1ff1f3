"""A project in one file, and back: everything that cannot be made again, while the server runs.

The file is a ZIP of ``project.db`` (copied by SQLite's backup interface), the settings, the estimated number of
classes, who may log in, the health of the items, embeddings that came with them and every finished round;
``backup.json`` holds their digests. Neither images nor ``cache/`` are in it.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from agcd import __version__
from agcd.app.create import CONFIG, HEALTH, PEOPLE, RECORDS, read_kind, read_settings
from agcd.app.embeddings import FOLDER as EMBEDDINGS
from agcd.app.jobs import Jobs
from agcd.app.kinds import IMAGE
from agcd.app.project import N_CLASSES, Project
from agcd.app.store.seals import forget_last_event
from agcd.app.store.store import Store
from agcd.errors import AgcdError, ConfigError, DataError, StorageError
from agcd.io import aside_of, atomic_write, digest_file, remove_leftovers, storage_error
from agcd.run_files import DONE
from agcd.words import typed

MANIFEST = "backup.json"
_TOP = (CONFIG, RECORDS, N_CLASSES, HEALTH, PEOPLE)
_RUN_FILE = r"runs/[0-9]{3,9}/[a-z]+\.(json|jsonl|parquet|safetensors)"
_MEMBER = re.compile(rf"({'|'.join(map(re.escape, _TOP))}|{_RUN_FILE}|{EMBEDDINGS}/[0-9]{{9}}\.npy)")
_MANIFEST_BYTES = 64 * 2**20


def write_backup(project: Project, out: Path) -> list[str]:
    """Write everything that cannot be made again into the file ``out``, and say what is in it.

    People may go on answering meanwhile: the records are those of one moment.
    """
    if out.exists():
        raise ConfigError(f"{out} exists already: choose another name for the backup.")
    digests: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="agcd-backup-") as scratch, atomic_write(out, private=True) as aside:
        project.store.copy_to(Path(scratch) / RECORDS)
        with zipfile.ZipFile(aside, "w") as made:
            for name, path in _members(project.folder):
                source = Path(scratch) / RECORDS if name == RECORDS else path
                is_small = not name.endswith((".safetensors", ".npy"))
                made.write(source, name, zipfile.ZIP_DEFLATED if is_small else zipfile.ZIP_STORED)
                digests[name] = digest_file(source)
            facts = {"version": __version__, "made": datetime.now(UTC).isoformat(), "files": digests}
            made.writestr(MANIFEST, json.dumps(facts, indent=2, sort_keys=True))
    return list(digests)


def _members(folder: Path) -> Iterator[tuple[str, Path]]:
    """What belongs into a backup, by the name it has there."""
    yield from ((name, folder / name) for name in _TOP if (folder / name).is_file())
    yield from ((f"{EMBEDDINGS}/{path.name}", path) for path in sorted(folder.glob(f"{EMBEDDINGS}/*.npy")))
    for done in sorted(folder.glob(f"runs/*/{DONE}")):
        for path in sorted(done.parent.iterdir()):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and _MEMBER.fullmatch(name):
                yield name, path


def restore_backup(backup: Path, folder: Path, *, replace: bool = False) -> list[str]:
    """Make the project at ``folder`` from a backup; what to do next, line by line.

    An existing project is only replaced if that is asked for, and nothing of it is deleted: it is moved into a folder
    of its own inside.
    """
    if (folder / RECORDS).exists() and not replace:
        raise ConfigError(f"{folder} is a project already: choose another folder, or add --replace.")
    if Jobs(folder).state().state == "running":
        raise ConfigError(f"{folder} is being trained: wait for it, or cancel it, and stop agcd serve.")
    try:
        remove_leftovers(folder, older_than=0)
        scratch = aside_of(folder / "restored")
        scratch.mkdir(parents=True)
        try:
            names = _unpack(backup, scratch)
            _check_unpacked(scratch)
            moved = _move_away(folder)
            for name in sorted(names, key=lambda name: name == RECORDS):  # which marks the project as made, last
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (scratch / name).replace(folder / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise storage_error(folder, error) from error
    return _next_steps(folder, moved)


def _unpack(backup: Path, into: Path) -> list[str]:
    """The files of a backup, each as its digest says."""
    try:
        with zipfile.ZipFile(backup) as stored:
            expected = _manifest(stored, backup)
            infos = {info.filename: info for info in stored.infolist() if info.filename != MANIFEST}
            if infos.keys() != expected.keys() or not all(map(_MEMBER.fullmatch, infos)) or RECORDS not in infos:
                raise DataError(f"{backup} is not a backup of a project: its list of files is another one.")
            if sum(info.file_size for info in infos.values()) > shutil.disk_usage(into).free:
                raise StorageError(f"{backup} does not fit on the disk: free some space and run again.")
            for name, info in infos.items():
                path = into / PurePosixPath(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with stored.open(info) as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target)
                if digest_file(path) != expected[name]:
                    raise DataError(f"{backup} is damaged ({name} is not what was stored): take another backup.")
    except FileNotFoundError:
        raise DataError(f"There is no file {backup}.") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, AgcdError):
            raise
        raise DataError(f"{backup} is damaged, or not a backup of a project ({error}).") from None
    return list(infos)


def _manifest(stored: zipfile.ZipFile, backup: Path) -> dict[str, str]:
    if MANIFEST not in stored.namelist() or stored.getinfo(MANIFEST).file_size > _MANIFEST_BYTES:
        raise DataError(f"{backup} is not a backup of a project: it holds no {MANIFEST}.")
    facts: Any = json.loads(stored.read(MANIFEST))
    return {str(name): str(value) for name, value in facts["files"].items()}


def _check_unpacked(folder: Path) -> None:
    """Whether the records and settings can be used by this version, before anything is replaced."""
    read_settings(folder / CONFIG)
    with Store(folder / RECORDS) as store:
        store.rows()
        store.events()
    forget_last_event(folder / RECORDS)


def _move_away(folder: Path) -> Path | None:
    """Put what a project at ``folder`` consists of aside; its caches of rounds, which may be others', go."""
    names = (*_TOP, "runs", EMBEDDINGS)
    present = [path for name in names for path in sorted(folder.glob(f"{name}*")) if path.exists()]
    for cached in ("rounds", "atlas", "job", "export"):
        shutil.rmtree(folder / "cache" / cached, ignore_errors=True)
    if not present:
        return None
    aside = folder / f"replaced-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    aside.mkdir()
    for path in present:
        path.replace(aside / path.name)
    return aside


def _next_steps(folder: Path, moved: Path | None) -> list[str]:
    lines = [f"what was there is in {moved}"] if moved else []
    with suppress(AgcdError):
        images = read_settings(folder / CONFIG)[1]
        if read_kind(folder).name == IMAGE and not images.is_dir():
            lines.append(f"the images are expected in {images}: set 'images' in {folder / CONFIG} to their place")
    return [*lines, f"next: agcd serve {typed(folder)}"]
