"""Finished cells, opened again: their records, and their models with the truth to compare them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agcd.errors import StorageError
from agcd.io import read_json
from agcd.lab.cells import Cell, Prepared, open_session, prepare, records_path, rounds_of
from agcd.session import Round, Session

Records = Sequence[dict[str, Any]]
"""One record per round of a cell, round 0 being the base model."""


@dataclass(frozen=True)
class Replay:
    """The rounds of a finished cell with their models."""

    prepared: Prepared
    session: Session

    @property
    def last(self) -> Round:
        return self.session.rounds[-1]


@dataclass(frozen=True)
class FinishedCells:
    """The cells that a benchmark left in ``out``. Only reads: a cell that was never run is an error."""

    out: Path
    cache_dir: Path

    def records(self, cell: Cell) -> Records:
        """What was measured after each round."""
        path = records_path(cell, self.out)
        if not path.exists():
            raise StorageError(f"{cell.data} with {cell.strategy}, seed {cell.seed}, was not run in {self.out}.")
        stored: Records = read_json(path)
        return stored

    def replay(self, cell: Cell) -> Replay:
        """Go through the rounds again, from the stored runs and queries."""
        self.records(cell)  # it was run
        prepared = prepare(cell, self.cache_dir)
        session = open_session(cell, prepared, self.out)
        for _ in rounds_of(cell, prepared, session):
            pass
        return Replay(prepared, session)
