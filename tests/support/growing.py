"""Projects whose pictures are their own, so that more can be put beside them."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from agcd.app.project import Project
from support.datasets import toy_images
from support.projects import make_project


@cache
def _trained() -> Path:
    """A folder with a project of one round and its pictures; made once per process."""
    from agcd.app.model import train  # it loads torch, which a serving process must not

    folder = Path(mkdtemp(prefix="agcd-growing-"))
    with make_project(folder) as project:
        train(project)
    return folder


def copy_of(folder: Path) -> Path:
    """A copy of a trained project below ``folder``, with a copy of its pictures."""
    for name in ("project", "images"):
        shutil.copytree(_trained() / name, folder / name)
    settings = folder / "project" / "agcd.toml"
    settings.write_text(settings.read_text().replace(str(_trained() / "images"), str(folder / "images")))
    return folder / "project"


def put(project: Project, n_per_class: int, seed: int, folder: str = "unlabelled") -> list[str]:
    """More pictures of the five classes into a folder of the images; their paths."""
    made = toy_images(project.folder.parent / "fresh" / str(seed), n_classes=5, n_per_class=n_per_class, seed=seed)
    paths = []
    for path in sorted(made.rglob("*.png")):
        target = project.images / folder / f"{path.parent.name}-{seed}{path.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        paths.append(target.relative_to(project.images).as_posix())
    return paths
