"""The items sorted into class folders, on the machine where the project is: start it, and watch it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from fastapi import APIRouter

from agcd.app.export.folders import MANIFEST, Way, sort_into_folders
from agcd.app.web import schemas
from agcd.app.web.json_bodies import StrictRoute
from agcd.app.web.server_state import ServerState
from agcd.errors import AgcdError, ConfigError

FOLDER = "sorted"
"""In the folder of the project."""


@dataclass(frozen=True)
class _Told:
    """How far the last sort is."""

    state: str = "idle"
    done: int = 0
    total: int = 0
    sentence: str = ""
    error: str | None = None


class _Work:
    """One sort at a time, in a thread of its own: the files are made by the disk, and a kill leaves nothing half."""

    def __init__(self, server: ServerState) -> None:
        self.server, self.out = server, server.project.folder.resolve() / FOLDER
        self.told = _Told()
        self._uid = ""
        self._lock = threading.Lock()

    def start(self, uid: str, how: Way, only_checked: bool) -> None:
        """Begin; a request that came before is not begun again."""
        with self._lock:
            if uid == self._uid:
                return
            if self.told.state == "running":
                nouns = self.server.project.kind.nouns
                raise ConfigError(f"Your {nouns} are being sorted already: wait until that is done.")
            self._uid, self.told = uid, _Told("running")
        threading.Thread(target=self._run, args=(how, only_checked), name="sort", daemon=True).start()

    def _run(self, how: Way, only_checked: bool) -> None:
        try:
            with self.server.opened() as project:
                done = sort_into_folders(project, self.out, how, only_checked=only_checked, progress=self._progress)
            self.told = replace(self.told, state="done", sentence=done.counted())
        except AgcdError as error:
            self.told = replace(self.told, state="failed", error=str(error))
        except Exception as error:
            self.told = replace(self.told, state="failed", error=f"Our mistake ({type(error).__name__}: {error}).")
            raise

    def _progress(self, done: int, total: int) -> None:
        self.told = replace(self.told, done=done, total=total)


def routes(server: ServerState) -> APIRouter:
    """The class folders of one project."""
    router, work = APIRouter(route_class=StrictRoute), _Work(server)

    def shown() -> schemas.Folders:
        is_there = (work.out / MANIFEST).is_file()
        return schemas.Folders.model_validate({**vars(work.told), "where": str(work.out), "is_there": is_there})

    @router.get("/folders")
    def folders() -> schemas.Folders:
        """Whether the pictures are sorted into folders, how far that is, and where they lie."""
        return shown()

    @router.post("/folders")
    def sort(body: schemas.SortIntoFolders) -> schemas.Folders:
        """Begin to sort the pictures into a folder per class; labelling goes on meanwhile."""
        work.start(body.uid, body.how, body.only_checked)
        return shown()

    return router
