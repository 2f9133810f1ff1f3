"""Predictions too large for memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agcd.training import fitted as module
from support.blobs import fast_config, make_blobs, make_session


def test_large_predictions_are_files_without_a_name_and_hold_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_session(make_blobs(), tmp_path, fast_config())
    folder = session.train().folder
    assert folder is not None
    plain = session.pool_view()
    asked = session.ask()
    monkeypatch.setattr(module, "_IN_MEMORY_BYTES", 0)
    before = sorted(path.name for path in folder.iterdir())
    mapped = session.pool_view()
    assert isinstance(mapped.probs, np.memmap)
    assert isinstance(mapped.features, np.memmap)
    assert sorted(path.name for path in folder.iterdir()) == before
    np.testing.assert_array_equal(mapped.probs, plain.probs)
    np.testing.assert_array_equal(mapped.features, plain.features)
    (tmp_path / "runs" / "001" / "query.json").unlink()
    np.testing.assert_array_equal(session.ask().rows, asked.rows)
