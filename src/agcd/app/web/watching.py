"""Watching the folder of images while the page is served: pictures that appear there are added by themselves."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path

from agcd.app.create import read_source_options, read_source_path
from agcd.app.growth import add_items
from agcd.app.image_paths import stored_path
from agcd.app.kinds import IMAGE
from agcd.app.project import Project
from agcd.app.web.repeating import Repeating
from agcd.app.web.server_state import ServerState
from agcd.data.folder import walk
from agcd.words import count

_SHARE = 0.05
"""Of the time that may go into looking: a folder of a million files is looked at more rarely."""
_Seen = tuple[int, int]
"""When a file was changed last, and its size."""
log = logging.getLogger("agcd")


class FolderWatch(Repeating):
    """A thread that lists the folder of images, or looks at the list of them, every few seconds.

    A file counts when it has not changed between two looks, so that one which is still being copied is not taken for a
    damaged one. It looks for itself: shared drives do not tell what others put there.
    """

    seconds = 2.0

    def __init__(self, server: ServerState) -> None:
        super().__init__("watching the folder")
        self.server = server
        self._seen: dict[Path, _Seen] = {}
        self._tried: dict[Path, _Seen] = {}
        self._next = 0.0

    def look(self) -> None:
        """Add what has come and lies still."""
        if time.monotonic() < self._next:
            return
        began = time.monotonic()
        with self.server.opened() as project:
            before, self._seen = self._seen, self._unknown(project)
            if self._seen and self._seen == before:
                self._tried |= self._seen
                added = add_items(project)
                if added.n_new:
                    log.info("%s in the watched folder", count(added.n_new, f"new {added.noun}"))
        self._next = time.monotonic() + (time.monotonic() - began) / _SHARE

    def _unknown(self, project: Project) -> dict[Path, _Seen]:
        """Files that are neither rows, removed ones among them, nor were tried as they are now."""
        found: dict[Path, _Seen] = {}
        for path in _candidates(project):
            try:
                facts = path.stat()
            except OSError:  # it has gone again
                continue
            seen = (facts.st_mtime_ns, facts.st_size)
            if self._tried.get(path) != seen:
                found[path] = seen
        return found


def _candidates(project: Project) -> Iterable[Path]:
    """The pictures in the folder that are no rows; of a project that was made from a list, the list."""
    source = read_source_path(project.folder)
    if not source.is_dir():
        return [source]
    project.labels()  # follows what others have added
    if project.kind.name != IMAGE:
        known = set(project.paths)
        files = (path for path in sorted(source.rglob("*.txt")) if path.is_file())
        return [path for path in files if path.relative_to(source).as_posix() not in known]
    known, root = set(project.paths), Path(os.path.abspath(source))
    paths = (root.joinpath(*parts) for parts in walk(root, read_source_options(project.folder)).files)
    return [path for path in paths if stored_path(path, project.images, project.folder) not in known]
