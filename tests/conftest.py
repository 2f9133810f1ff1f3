"""What tests of several folders share; which stay in one process of pytest-xdist, and which come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

LONGEST = (
    "test_engine_ray",
    "test_serve_kills",
    "test_engine_torchrun",
    "test_browser",
    "test_project_kills",
    "test_bench",
    "test_jobs",
    "test_engines",
    "test_agreement",
    "test_demo",
    "test_vit_end_to_end",
    "test_session",
    "test_beyond",
    "test_http_loop",
    "test_export_onnx",
    "test_paper",
)
"""Parts of the names of modules with tests of ten seconds and more, by ``pytest --durations``."""


# Before pytest-xdist, which reads the marks at this moment too.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _shares_with_its_module(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    # Else one process is left alone with them at the end.
    places = {part: place for place, part in enumerate(LONGEST)}
    items.sort(key=lambda item: min((places[part] for part in LONGEST if part in item.path.stem), default=len(LONGEST)))


def _shares_with_its_module(item: pytest.Item) -> bool:
    """Whether it asks for something that is made once per module: a trained model, a browser, a Ray cluster."""
    if not isinstance(item, pytest.Function):
        return False
    made = item._fixtureinfo.name2fixturedefs
    return any(made[name][-1].scope == "module" for name in item.fixturenames if name in made)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of a benchmark one after the other and here: a process for them loads torch, which takes seconds."""
    from agcd.engine.local import LocalEngine

    def run(_: LocalEngine, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        yield from ((position, function(*task)) for position, task in enumerate(tasks))

    monkeypatch.setattr(LocalEngine, "run", run)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """As in processes that are killed or train together: equal weights need equal orders of summation."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
