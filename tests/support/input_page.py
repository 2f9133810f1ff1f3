"""Writes docs/inputs.md from the table of inputs: ``PYTHONPATH=src:tests python -m support.input_page``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from agcd.errors import AgcdError
from support.input_table import GROUPS
from support.inputs import Input, line, read, refused, told

PAGE = Path(__file__).parents[2] / "docs" / "inputs.md"
MARK = "## What is made of what\n"
"""Above it people write, below it this module does."""


def cell(case: Input) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return told(read(case, Path(folder)))
        except AgcdError as error:
            return refused(error, Path(folder))


def main() -> None:
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    lines = [written + MARK, *INTRODUCTION]
    for group, cases in GROUPS.items():
        lines += ["", f"### {group}", "| what is given | what is understood |", "|---|---|"]
        lines += [line(case, cell(case)) for case in cases]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


INTRODUCTION = [
    "Every line is an input that a test makes and reads (`tests/support/input_table.py`; this part is made by",
    "`PYTHONPATH=src:tests python -m support.input_page`). A number after a class counts its labels. **asks** means",
    "that `init` is not sure: it asks in a terminal, and stops elsewhere unless `--yes` takes the first reading, which",
    "is the one shown.",
]

if __name__ == "__main__":
    main()
