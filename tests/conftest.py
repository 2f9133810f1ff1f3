"""What tests of several folders share, and how pytest-xdist deals them out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

LONGEST = (
    "test_engine_ray",
    "test_serve_kills",
    "test_engine_torchrun",
    "test_browser",
    "test_browser_board",
    "test_browser_screens",
    "test_notebooks",
    "test_project_kills",
    "test_browser_faults",
    "test_vit_end_to_end",
    "test_jobs",
    "test_bench",
    "test_agreement",
    "test_engines",
    "test_http_loop",
    "test_person_rounds",
    "test_notebook",
    "test_proxies",
    "test_session",
    "test_browser_pages",
    "test_export_onnx",
    "test_report",
    "test_agents",
    "test_costs",
    "test_blocks",
    "test_site",
)
"""Modules of twenty seconds and more, the longest first: else one process is left alone with them at the end."""
APART = frozenset(
    {"test_agreement", "test_bench", "test_costs", "test_engines", "test_jobs", "test_notebooks", "test_project_kills"}
)
"""Modules whose tests share nothing that is dear. All others stay in one process, which makes once what they share: a
Ray cluster, a browser, a model."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {stem: number for number, stem in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


class _Dealt(LoadScopeScheduling):  # type: ignore[misc]
    """Module by module in the order of collection, and test by test where modules are taken apart."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return nodeid if PurePosixPath(module).stem in APART else module


# Not by marks: pytest-xdist 3.8 drops the groups of ``--dist loadgroup`` with pytest 9.2 (its issue 1386).
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Dealt:
    config.option.loadscopereorder = False  # by the number of tests, which says little about their time
    return _Dealt(config, log)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of a benchmark one after the other and here: a process for them loads torch, which takes seconds."""
    from agcd.engine.local import LocalEngine
    from support.engines import run_here

    monkeypatch.setattr(LocalEngine, "run", run_here)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """As in processes that are killed or train together: equal weights need equal orders of summation."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
