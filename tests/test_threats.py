"""Every threat has tests, and docs/security.md names them."""

from __future__ import annotations

import ast

import pytest

from support import TESTS
from support.threats import HEADING, PAGE, THREATS, files_of


def test_there_is_an_entry_for_each_of_the_26_threats() -> None:
    assert len(THREATS) == 26
    table = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    lines = [line for line in table.splitlines() if line.startswith("| ") and line[2].isdigit()]
    for line, (threat, tests) in zip(lines, THREATS.items(), strict=True):
        assert threat in line
        assert all(name.removeprefix("tests/") in line for name in files_of(tests))
        assert int(line.split("|")[-2]) > 0


@pytest.mark.parametrize("name", sorted({name for tests in THREATS.values() for name in tests}))
def test_every_test_that_is_named_exists(name: str) -> None:
    file, _, start = name.partition("::")
    functions = [node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)]
    assert any(function.startswith(start or "test_") for function in functions), name
