"""What a table or figure may look at: the records of finished cells, and their models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agcd.lab.cell_story import Replay, replay
from agcd.lab.cells import Cell, run_cell

Records = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Look:
    """Finished cells by their folders; nothing is computed that is on disk."""

    out: Path
    cache_dir: Path

    def records(self, cell: Cell) -> Records:
        """One record per round, round 0 being the base model."""
        return run_cell(cell, self.out, self.cache_dir)

    def replay(self, cell: Cell) -> Replay:
        """The rounds of a cell with their models, and the truth to compare them with."""
        return replay(cell, self.out, self.cache_dir)
