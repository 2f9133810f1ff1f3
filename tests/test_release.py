"""One version everywhere, whole metadata, and an address that comes only from whoever builds a release."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import agcd

ROOT = Path(__file__).parents[1]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text())
LIGHT = tomllib.loads((ROOT / "packaging/serve/pyproject.toml").read_text())
ADDRESS = "https://example.org/team/agcd"


def loaded(path: str) -> ModuleType:
    """A file of the repository that is no module of the package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hook() -> ModuleType:
    pytest.importorskip("hatchling")
    return loaded("hatch_build.py")


def test_one_version_is_told_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert WHOLE["project"]["version"] == agcd.__version__
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [agcd.__version__]
    (released,) = re.findall(r"^date-released: (.*)$", citation, re.MULTILINE)
    heading = f"## {agcd.__version__} — {released}"
    assert heading in (ROOT / "CHANGELOG.md").read_text().splitlines()


def test_the_changelog_has_its_versions_in_order_with_their_dates() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = headings[1:] if headings[0] == "Unreleased" else headings
    parts = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) — (\d{4}-\d\d-\d\d)", line) for line in versions]
    assert all(parts), "## 1.2.3 — 2026-11-30"
    found = [(tuple(map(int, part.groups()[:3])), part[4]) for part in parts if part]
    assert found == sorted(found, reverse=True)


def test_both_distributions_say_whose_they_are_and_what_for() -> None:
    for table in (WHOLE, LIGHT):
        project = table["project"]
        assert project["authors"] == [{"name": "The agcd developers"}]
        assert project["license"] == "MIT AND CC-BY-4.0"
        assert "Typing :: Typed" in project["classifiers"]
        assert "Programming Language :: Python :: 3.11" in project["classifiers"]
        assert "urls" in project["dynamic"]
        assert table["build-system"] == {"requires": ["hatchling"], "build-backend": "hatchling.build"}
    assert LIGHT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"] == "../../hatch_build.py"


def metadata(hook: ModuleType, root: Path = ROOT, config: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    hook.ReleaseMetadata(str(root), config or {}).update(found)
    return found


def test_without_an_address_there_are_no_links(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGCD_URL", raising=False)
    found = metadata(hook)
    assert found["urls"] == {}
    assert found["readme"] == {"content-type": "text/markdown", "text": (ROOT / "README.md").read_text()}


def test_an_address_makes_every_link_whole(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGCD_URL", f"{ADDRESS}/")
    found, tag = metadata(hook), f"v{agcd.__version__}"
    assert found["urls"]["Source"] == ADDRESS
    assert found["urls"]["Changelog"] == f"{ADDRESS}/blob/{tag}/CHANGELOG.md"
    text = found["readme"]["text"]
    assert f"({ADDRESS}/raw/{tag}/docs/images/page-label.png)" in text
    assert f"({ADDRESS}/blob/{tag}/docs/researcher.md#one-call)" in text
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    assert all(link.startswith("https://") for link in links)
    light = metadata(hook, ROOT / "packaging/serve", LIGHT["tool"]["hatch"]["metadata"]["hooks"]["custom"])
    assert f"({ADDRESS}/blob/{tag}/docs/install.md)" in light["readme"]["text"]
    assert ".." not in light["readme"]["text"]


@pytest.mark.parametrize("address", ["agcd", "http://example.org/agcd", "https://", "https://example.org/?a=b"])
def test_what_is_no_address_is_refused(hook: ModuleType, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGCD_URL", address)
    with pytest.raises(ValueError, match="is not an address of a repository such as https://host/team/agcd"):
        metadata(hook)


FILES = frozenset({"src/agcd/__init__.py", "src/agcd/py.typed", "README.md", ".ci/run", "tests/test_a.py"})
WHEEL = ["agcd/__init__.py", "agcd/py.typed", "agcd-1.dist-info/METADATA", "agcd-1.dist-info/licenses/LICENSE"]
SDIST = ["agcd-1/README.md", "agcd-1/src/agcd/__init__.py", "agcd-1/src/agcd/py.typed", "agcd-1/tests/test_a.py"]


def test_files_of_a_release_are_compared_with_the_repository() -> None:
    check = loaded("tools/release_check.py")
    check.check_wheel(WHEEL, FILES)
    check.check_sdist([*SDIST, "agcd-1/PKG-INFO"], FILES)
    with pytest.raises(check.Failed, match=r"\['agcd/__pycache__/a\.pyc'\] too much and lacks \[\]"):
        check.check_wheel([*WHEEL, "agcd/__pycache__/a.pyc"], FILES)
    with pytest.raises(check.Failed, match=r"lacks \['agcd/py\.typed'\]"):
        check.check_wheel([name for name in WHEEL if name != "agcd/py.typed"], FILES)
    with pytest.raises(check.Failed, match="no licence"):
        check.check_wheel(WHEEL[:-1], FILES)
    with pytest.raises(check.Failed, match=r"\['\.ci/run'\] too much"):
        check.check_sdist([*SDIST, "agcd-1/.ci/run"], FILES)


def test_the_repository_names_no_address_of_its_own() -> None:
    for path in ("pyproject.toml", "packaging/serve/pyproject.toml", "CITATION.cff", "SECURITY.md"):
        assert "://" not in (ROOT / path).read_text(), path
