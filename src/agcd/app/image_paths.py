"""How a project writes down where a picture lies, and finds it again.

A stored path has one of three forms, always with ``/``: ``cats/1.jpg`` starts at the folder of the images that
``agcd.toml`` names; ``./unpacked/more/1.jpg`` starts at the project's own folder, where archives are unpacked; an
absolute path is that of a picture elsewhere. So projects and folders of images may be moved.
"""

from __future__ import annotations

import os
from pathlib import Path

UNPACKED = "unpacked"
"""The folder inside a project that holds what came out of archives."""
_OWN = "./"


def stored_path(path: Path, images: Path, folder: Path) -> str:
    """How a picture at ``path`` is written down in the project at ``folder`` whose images lie below ``images``."""
    path, images, folder = (Path(os.path.abspath(place)) for place in (path, images, folder))
    if path.is_relative_to(images):
        return path.relative_to(images).as_posix()
    if path.is_relative_to(folder):
        return _OWN + path.relative_to(folder).as_posix()
    return path.as_posix()


def picture_path(stored: str, images: Path, folder: Path) -> Path:
    """Where the picture that was written down as ``stored`` lies now."""
    return folder / stored if stored.startswith(_OWN) else images / stored
