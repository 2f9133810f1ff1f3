"""Imports point down only, and heavy libraries stay where they belong (docs/DESIGN of the layers)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agcd

ROOT = Path(agcd.__file__).parent
LAYERS = [
    {"types", "errors", "rng", "files", "arrays"},
    {"config", "data", "records", "assignment", "graph", "mapping", "strategies", "metrics"},
    {"features"},
    {"discovery"},
    {"session", "engine"},
    {"api", "report", "export", "project", "web"},
    {"bench"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ALLOWED_HOMES = {
    "torch": {"features", "discovery", "engine", "export"},
    "timm": {"features"},
    "torchvision": {"features"},
    "sqlite3": {"records"},
    "fastapi": {"web"},
    "starlette": {"web"},
}
MODULES = sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "agcd":
                yield from (f"agcd.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down_only(path: Path) -> None:
    own = part_of(path)
    if own == "__init__":
        return
    assert own in RANK, f"{own} has no layer: add it to LAYERS"
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "agcd" and len(parts) > 1 and parts[1] in RANK and parts[1] != own:
            assert RANK[parts[1]] <= RANK[own], f"{path.name} ({own}) imports {name} from above"
        homes = ALLOWED_HOMES.get(parts[0])
        assert homes is None or own in homes, f"{path.name} imports {name}, which belongs to {homes}"


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
