"""Imports point down only, siblings do not import each other, no lazy import hides a cycle, and heavy libraries stay
where they belong (docs/design.md draws the house)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agcd

ROOT = Path(agcd.__file__).parent
LIBRARY: list[set[str]] = [
    {"types", "errors", "rng", "processes"},
    {"io", "arrays", "assignment", "words", "overrides"},
    {"provenance", "known_weights", "fetch_weights"},
    {"config", "plugins", "propagation", "herding", "mapping", "layout", "plotting", "evidence", "run_files"},
    {"beliefs", "accuracy"},
    {"asking"},
    {"signs"},
    {"data", "metrics", "strategies"},
    {"features"},
    {"training"},
    {"run_store", "engine", "tracking"},
    {"session", "report"},
    {"estimator"},
    {"api"},
    {"app"},
    {"client"},
    {"lab"},
    {"cli"},
]
APP: list[set[str]] = [
    {"image_paths", "store"},
    {"kinds", "embeddings"},
    {"labels", "row_log"},
    {"label_log"},
    {"questions", "rounds"},
    {"round_files"},
    {"live", "live_rows"},
    {"live_questions", "snapshot"},
    {"create"},
    {"project"},
    {"answers", "figures", "new_items", "second_look", "sizing", "status"},
    {"model"},
    {"export", "growth", "report"},
    {"jobs"},
    {"backup", "check", "work"},
    {"web"},
]
LAB: list[set[str]] = [
    {"published", "given", "evaluator"},
    {"datasets", "starts", "results"},
    {"cells"},
    {"measured", "finished", "frozen", "watching"},
    {"bench"},
    {"accuracy", "ask", "experiment", "paper", "demo", "person"},
    {"beyond"},
]
ROOMS = {"": LIBRARY, "app": APP, "lab": LAB}
"""The parts of each room, the lowest first; parts of one line are siblings."""
ALLOWED_HOMES = {
    "torch": {"features", "training", "engine", "run_store", "session", "tracking", "app/export"},
    "timm": {"features"},
    "torchvision": {"features"},
    "sqlite3": {"app/store"},
    "fastapi": {"app/web"},
    "starlette": {"app/web"},
}
MODULES = {
    ".".join(("agcd", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at the top, inside a function or for its types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in inside if name in MODULES)
            if not all(name in MODULES for name in inside):
                yield node.module


def rank(room: str, part: str) -> int:
    ranks = {name: number for number, names in enumerate(ROOMS[room]) for name in names}
    assert part in ranks, f"{part} has no place in {room or 'the library'}: add it to tests/test_layers.py"
    return ranks[part]


def check_room(room: str, own: list[str], other: list[str], sentence: str) -> None:
    """Both lists are the parts of a module's name below the room."""
    if own and other and own[0] != other[0]:
        assert rank(room, other[0]) < rank(room, own[0]), sentence


@pytest.mark.parametrize("name", [name for name in MODULES if name != "agcd"])
def test_imports_point_down_and_never_sideways(name: str) -> None:
    own = name.split(".")[1:]
    home = "/".join(own[:2]) if own[0] in ROOMS else own[0]
    for other_name in imported(MODULES[name]):
        top, *other = other_name.split(".")
        homes = ALLOWED_HOMES.get(top)
        assert homes is None or home in homes, f"{name} imports {other_name}, which belongs to {homes}"
        if top == "agcd" and other:
            sentence = f"{name} imports {other_name}, which does not lie below it"
            check_room("", own, other, sentence)
            if own[0] == other[0] and own[0] in ROOMS:
                check_room(own[0], own[1:], other[1:], sentence)


def test_the_lab_meets_a_project_as_others_do() -> None:
    """By the page's interface and files: research must not lean on what practitioners' projects are made of inside."""
    for name in (name for name in MODULES if name.startswith("agcd.lab")):
        assert not [other for other in imported(MODULES[name]) if other.startswith("agcd.app")], name


def test_no_import_hides_a_cycle() -> None:
    """Also not inside a function: what needs each other belongs together, or has something below it in common."""
    left = {name: {other for other in imported(path) if other in MODULES} - {name} for name, path in MODULES.items()}
    for name in left:  # a package's own __init__ may gather its parts
        left[name] -= {other for other in left[name] if name.startswith(f"{other}.")}
    while free := [name for name, needs in left.items() if not needs]:
        for name in free:
            del left[name]
        left = {name: needs - set(free) for name, needs in left.items()}
    assert not left, f"these modules import each other in a circle, or what does: {sorted(left)}"


@pytest.mark.parametrize("command", ["--help", "version", "strategies", "data"])
def test_light_commands_never_load_torch(command: str) -> None:
    code = (
        "import sys, runpy; sys.argv = ['agcd', sys.argv[1]]\n"
        "try:\n    runpy.run_module('agcd.cli', run_name='__main__')\n"
        "except SystemExit as e:\n    assert not e.code, e.code\n"
        "assert 'torch' not in sys.modules, 'torch was loaded'"
    )
    done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
