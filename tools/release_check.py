"""What can be known of a release before strangers install it: ``make release-check``, which takes minutes.

    .release-tools/bin/python tools/release_check.py [build] [install] [serve] [floors]

Works on a clean clone of what is committed, in environments of its own, and prints what passed; the first thing that
does not pass ends it. Needs the registries, as installing does. ``AGCD_URL`` is built in as in a release.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PYTHON = Path(sys.executable)
TOOLS = PYTHON.parent
EPOCH = "SOURCE_DATE_EPOCH"
NEWER = ("3.12", "3.13", "3.14")
"""Pythons on which labelling alone is tried; training is bound to those that torch has builds for."""
NOT_RELEASED = (".ci/",)
"""Of the repository, not in the sdist."""
CARDS = r"^(torch==|triton|nvidia-|cuda-)"
"""What the registry's build of torch for graphics cards brings; torch itself is installed first, as the pin says."""
SCHEMAS = (
    ("compose-spec", "compose.yaml"),
    ("citation-file-format", "CITATION.cff"),
    ("github-issue-forms", ".github/ISSUE_TEMPLATE/bug.yml"),
    ("github-issue-forms", ".github/ISSUE_TEMPLATE/idea.yml"),
)
FOR_TESTS = ("pytest", "pytest-xdist", "hypothesis", "httpx", "httpx2", "playwright", "trustme")
OLD_WARNINGS = ("-W", "ignore::DeprecationWarning", "-p", "no:cacheprovider")
"""Old versions warn of what is new; the newest ones of what is old, and that fails the suite."""
FAST = (
    "client",
    "cli/test_cli.py",
    "test_session.py",
    "app/web/test_web_api.py",
    "data/test_sources.py",
    "features/test_tails.py",
)
"""Tests that touch nearly every dependency, in some minutes."""
BY_CHANCE = "tests/app/web/test_web_api.py::test_the_board_shows_every_group_and_takes_no_single_answer_for_a_conflict"
"""Hangs on the random weights of the toy network, of which other versions of timm draw others."""
PICTURES = """
import sys
from pathlib import Path
from PIL import Image, ImageDraw
for name, colour, corners in (("square", "red", 4), ("triangle", "blue", 3), ("octagon", "green", 8)):
    for i in range(12):
        folder = Path(sys.argv[1]) / (name if i < 3 and corners != 8 else "unlabelled")
        folder.mkdir(parents=True, exist_ok=True)
        picture = Image.new("RGB", (96, 96), (20 * i, 200, 120))
        ImageDraw.Draw(picture).regular_polygon((48, 48, 20 + 2 * i), corners, rotation=7 * i, fill=colour)
        picture.save(folder / f"{name}-{i}.png")
"""
LABELLING = """
import sys
from agcd.client import serve
with serve(sys.argv[1], by_hand=True) as page:
    card = page.question()
    assert page.answer(card.row, "octagon").stored == {"label": 1}
    assert {line["row"]: line["class"] for line in page.labels()}[card.row] == "octagon"
    page.undo()
assert "torch" not in sys.modules
"""


class Failed(Exception):
    """Something about the release is not as it should be."""


def run(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """The output of a command; Failed with the end of what it said where it does not succeed."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=clean | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def passed(what: str) -> None:
    print(f"passed: {what}", flush=True)


@dataclass(frozen=True)
class Built:
    """A clean clone, and what was built from it."""

    tree: Path
    files: frozenset[str]
    """What the repository holds."""
    sdist: Path
    wheel: Path
    light: Path
    epoch: dict[str, str]
    """``SOURCE_DATE_EPOCH``, by which builds are the same."""


def build(scratch: Path) -> Built:
    """Clone what is committed twice, build each copy under other circumstances, and compare."""
    epoch = run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    found: list[list[Path]] = []
    for name, mask, zone in (("one", 0o022, "UTC"), ("another-place", 0o077, "Asia/Kathmandu")):
        tree, out = scratch / name / "agcd", scratch / name / "dist"
        before = os.umask(mask)
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, tree, cwd=ROOT)
        env = {EPOCH: epoch, "TZ": zone}
        run(PYTHON, "-m", "build", "--outdir", out, tree, cwd=scratch, env=env)
        run(PYTHON, "-m", "build", "--wheel", "--outdir", out, tree / "packaging/serve", cwd=scratch, env=env)
        os.umask(before)
        found.append(sorted(out.iterdir()))
    for one, other in zip(*found, strict=True):
        if (one.name, sha256(one)) != (other.name, sha256(other)):
            raise Failed(f"Two builds of {one.name} differ.")
    passed(f"two builds are the same to the byte ({EPOCH}={epoch})")
    for path in found[0]:
        print(f"  {sha256(path)}  {path.name}  {path.stat().st_size:,} bytes")
    tree = scratch / "one" / "agcd"
    wheel, sdist, light = found[0]
    return Built(tree, frozenset(run("git", "ls-files", cwd=tree).splitlines()), sdist, wheel, light, {EPOCH: epoch})


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_files(built: Built, scratch: Path) -> None:
    """What is in the files, and what an index would say of them."""
    made = [built.sdist, built.wheel, built.light]
    run(TOOLS / "twine", "check", "--strict", *made, cwd=scratch)
    passed("twine check --strict")
    run(TOOLS / "check-wheel-contents", built.wheel, built.light, cwd=scratch)
    passed("check-wheel-contents")
    for wheel in (built.wheel, built.light):
        with zipfile.ZipFile(wheel) as archive:
            check_wheel(archive.namelist(), built.files)
    passed("the wheels hold every file of src/agcd, their licence, and nothing else")
    with tarfile.open(built.sdist) as archive:
        check_sdist([member.name for member in archive if not member.isdir()], built.files)
    passed("the sdist holds the repository and nothing else")
    out = scratch / "from-tree"
    run(PYTHON, "-m", "build", "--wheel", "--outdir", out, built.tree, cwd=scratch, env=built.epoch)
    if sha256(out / built.wheel.name) != sha256(built.wheel):
        raise Failed("The sdist builds another wheel than the repository.")
    passed("the sdist and the repository build the same wheel")
    run(TOOLS / "hadolint", "Dockerfile", cwd=built.tree)
    for schema, name in SCHEMAS:
        run(TOOLS / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", name, cwd=built.tree)
    passed(f"hadolint Dockerfile; schemas of {', '.join(name for _, name in SCHEMAS)}")


def check_wheel(names: Sequence[str], files: AbstractSet[str]) -> None:
    """Exactly the package as the repository has it, beside what the build writes of it."""
    wanted = {name.removeprefix("src/") for name in files if name.startswith("src/agcd/")}
    own = {name for name in names if ".dist-info/" not in name}
    if own != wanted:
        raise Failed(f"The wheel has {sorted(own - wanted)} too much and lacks {sorted(wanted - own)}.")
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        raise Failed("The wheel has no licence.")


def check_sdist(names: Sequence[str], files: AbstractSet[str]) -> None:
    """Exactly what the repository has, but for what only its owners need."""
    own = {name.partition("/")[2] for name in names} - {"PKG-INFO"}
    wanted = {name for name in files if not name.startswith(NOT_RELEASED)}
    if own != wanted:
        raise Failed(f"The sdist has {sorted(own - wanted)} too much and lacks {sorted(wanted - own)}.")


def install(built: Built, scratch: Path) -> Path:
    """The wheel alone in a fresh environment, used from elsewhere; the project that was made with it."""
    python = scratch / "whole" / "bin" / "python"
    run(PYTHON, "-m", "venv", scratch / "whole", cwd=scratch)
    for wanted in ("torch", built.wheel):  # torch first and alone: the pin picks the build without graphics cards
        run(python, "-m", "pip", "install", "--quiet", "-c", built.tree / "constraints.txt", wanted, cwd=scratch)
    run(python, "-m", "pip", "check", cwd=scratch)
    use(python, scratch / "elsewhere", "whole")
    return scratch / "elsewhere" / "project"


def use(python: Path, folder: Path, word: str) -> None:
    """The first steps of somebody who has just installed it."""
    folder.mkdir()
    agcd, env = python.with_name("agcd"), {"AGCD_CACHE": str(folder / "cache")}
    version = run(agcd, "--version", cwd=folder, env=env).strip()
    run(agcd, "doctor", cwd=folder, env=env)
    run(python, "-c", PICTURES, folder / "pictures", cwd=folder)
    run(agcd, "init", "project", "--images", "pictures", "--yes", cwd=folder, env=env)
    settings = folder / "project" / "agcd.toml"
    settings.write_text(f"{settings.read_text()}\n[train]\nbase_epochs = 2\nround_epochs = 2\n")
    run(agcd, "train", "project", cwd=folder, env=env)
    asked = run(agcd, "query", "project", "-n", "3", cwd=folder, env=env)
    run(python, "-c", LABELLING, "project", cwd=folder, env=env)
    passed(f"{word}: agcd {version}: doctor, init, train, query ({len(asked.splitlines())} lines), serve, agcd.client")


def label_alone(built: Built, scratch: Path, project: Path) -> None:
    """``agcd-serve`` on every newer Python that is here, with a project that the whole installation made."""
    for version in NEWER:
        python = found_python(version)
        if python is None:
            print(f"not run: agcd-serve on Python {version}, which is not here")
            continue
        folder = scratch / version
        run(python, "-m", "venv", folder / "venv", cwd=scratch)
        own = folder / "venv" / "bin" / "python"
        run(own, "-m", "pip", "install", "--quiet", built.light, cwd=folder)
        shutil.copytree(project.parent, folder / "copy")
        run(own, "-m", "agcd.cli", "status", "project", cwd=folder / "copy")
        run(own, "-c", LABELLING, "project", cwd=folder / "copy")
        passed(f"agcd-serve on Python {version}: status, a question asked and answered by agcd.client")


def found_python(version: str) -> str | None:
    """An interpreter of this machine; nothing is fetched."""
    done = subprocess.run(
        [TOOLS / "uv", "python", "find", "--no-python-downloads", "--no-project", version],
        capture_output=True,
        text=True,
        check=False,
    )
    pyenv = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python"))
    return done.stdout.strip() or (str(pyenv[-1]) if pyenv else None)


def floors(built: Built, scratch: Path) -> None:
    """The lowest allowed version of every dependency, torch at its pin: the first steps and a part of the suite."""
    pinned, plain = scratch / "floors.txt", scratch / "floors-plain.txt"
    how = ["--resolution", "lowest-direct", "--python-version", "3.11", "--no-annotate", "--no-header"]
    resolve = [TOOLS / "uv", "pip", "compile", "--quiet", *how]
    run(*resolve, "-c", "constraints.txt", "pyproject.toml", "-o", pinned, cwd=built.tree)
    lines = [line for line in pinned.read_text().splitlines() if not re.match(CARDS, line)]
    plain.write_text("\n".join(lines))
    python = scratch / "lowest" / "bin" / "python"
    run(PYTHON, "-m", "venv", scratch / "lowest", cwd=scratch)
    run(python, "-m", "pip", "install", "--quiet", "-c", built.tree / "constraints.txt", "torch", cwd=scratch)
    into = [TOOLS / "uv", "pip", "install", "--quiet", "--python", python]
    run(*into, "--no-deps", "-r", plain, built.wheel, cwd=scratch)
    use(python, scratch / "lowest-use", "lowest versions")
    run(*into, "-c", plain, *FOR_TESTS, cwd=scratch)
    tests = [*OLD_WARNINGS, "--deselect", BY_CHANCE, *(f"tests/{name}" for name in FAST)]
    run(python, "-m", "pytest", "-q", *tests, cwd=built.tree)
    passed(f"lowest versions: {', '.join(FAST)}")


STEPS = ("build", "install", "serve", "floors")


def main() -> None:
    wanted = sys.argv[1:] or list(STEPS)
    if run("git", "status", "--porcelain", cwd=ROOT).strip():
        print("what is not committed is not checked")
    try:
        with TemporaryDirectory(prefix="agcd-release-") as folder:
            scratch = Path(folder)
            built = build(scratch)
            check_files(built, scratch)
            if {"install", "serve"} & set(wanted):
                project = install(built, scratch)
            if "serve" in wanted:
                label_alone(built, scratch, project)
            if "floors" in wanted:
                floors(built, scratch)
    except Failed as failed:
        raise SystemExit(f"failed: {failed}") from None


if __name__ == "__main__":
    main()
