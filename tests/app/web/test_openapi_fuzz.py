"""Whatever is sent to the API: no error of ours, no undocumented status, and every answer is as described."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fuzzing import Fuzzer, fuzzed
from support.servers import trained_project

N_CASES = 10_000


@pytest.fixture
def fuzzer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fuzzer]:
    with fuzzed(trained_project(tmp_path), monkeypatch) as opened:
        yield opened


def test_made_up_requests_get_what_the_description_promises(fuzzer: Fuzzer) -> None:
    fuzzer.try_all(4)
    assert {label for label, _ in fuzzer.sent} == {operation.label for operation in fuzzer.operations()}
    assert fuzzer.statuses[200] > fuzzer.statuses.total() / 5, "the routes do real work"


@pytest.mark.slow
def test_10_000_made_up_requests_get_what_the_description_promises(fuzzer: Fuzzer) -> None:
    for number in range(20):
        fuzzer.try_all(50, number)
        if fuzzer.statuses.total() >= N_CASES:
            break
    print(sorted(fuzzer.statuses.items()))
    assert fuzzer.statuses.total() >= N_CASES


@pytest.mark.fuzz
def test_made_up_requests_for_as_long_as_there_is_time(fuzzer: Fuzzer) -> None:
    end, number = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "60")), time.time_ns()
    while time.monotonic() < end:
        fuzzer.try_all(10, number := number + 1)
    assert fuzzer.statuses.total() > 0
