"""The order of the tests: the longest come first, so that no process is left alone with them at the end."""

from __future__ import annotations

import pytest

LONGEST = (
    "test_serve_kills",
    "test_engine_ray",
    "test_engine_torchrun",
    "test_jobs",
    "test_session",
    "test_project_kills",
    "test_bench",
    "test_demo",
    "test_beyond",
    "test_engines",
    "test_agreement",
    "test_vit_end_to_end",
    "test_browser",
)
"""Modules with tests of ten seconds and more, by ``pytest --durations``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: min((place[name] for name in LONGEST if name in item.nodeid), default=len(LONGEST)))
