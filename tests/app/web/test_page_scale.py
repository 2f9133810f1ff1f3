"""What the page keeps sorted and counted for a million rows is what plain loops would say."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from agcd.app.rounds import NO_SLOT
from agcd.app.store.events import LabelEvent
from agcd.app.store.store import Store
from agcd.app.web import grid_map
from agcd.app.web.board import two_means
from agcd.app.web.file_names import FileNames
from agcd.app.web.pictures import Pictures
from agcd.app.web.server_state import ServerState
from agcd.rng import generator
from agcd.types import BoolArray, FloatArray
from support.pictures import Rows
from support.snapshots import N_ROWS, made_up_round, snapshots


def server_of(folder: Path) -> ServerState:
    """As much of a server as showing pictures needs."""
    pictures = Pictures(Rows([], [f"b2-{row:032x}" for row in range(N_ROWS)], folder), folder)
    files = FileNames([f"folder/{row}.png" for row in range(N_ROWS)])

    def seen(row: int) -> dict[str, object]:
        return {"row": row, "v": pictures.version(row)}

    return cast(ServerState, SimpleNamespace(pictures=pictures, files=files, seen=seen))


@pytest.mark.parametrize("order", grid_map.ORDERS)
@pytest.mark.parametrize("show", ["all", "unlabelled", "labelled", "accepted", "passed"])
def test_a_grid_is_ordered_as_if_its_own_rows_were_sorted(show: str, order: str, tmp_path: Path) -> None:
    seen, snapshot = made_up_round(1), snapshots(1)[-1]
    rows = grid_map._chosen(server_of(tmp_path), snapshot, show, None)[0]
    probs, p_right = seen.top_probs[rows].astype(np.float32), snapshot.p_right(rows)
    plain = {
        "row": np.arange(len(rows)),
        "uncertain": np.argsort(p_right, kind="stable"),
        "confident": np.argsort(-p_right, kind="stable"),
        "class": np.lexsort((-probs[:, 0], seen.top_slots[rows, 0])),
    }
    assert grid_map._ordered(snapshot, rows, order).tolist() == rows[plain[order]].tolist()


def test_a_large_map_shows_the_newest_labels_and_a_sample_of_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid_map, "MAX_POINTS", 20)
    seen, snapshot, server = made_up_round(2), snapshots(2)[-1], server_of(tmp_path)
    shown = grid_map.map_points(server, snapshot, seen, [0])
    assert len(shown.row) <= 20
    assert len(set(shown.row)) == len(shown.row)
    assert set(shown.row) <= set(seen.order.tolist())
    labelled = snapshot.labels.labels["row"].tolist()
    assert set([row for row in labelled if seen.top_slots[row, 0] != NO_SLOT][:10]) <= set(shown.row)
    assert shown.n_rows == len(seen.order)
    thumbs = ServerState.thumbs(server, snapshot, shown.row)
    assert shown.by == [thumb.by or "model" for thumb in thumbs]
    assert shown.v == [thumb.v for thumb in thumbs]
    names = [shown.names[number] for number in shown.name]
    by_model = [name for name, thumb in zip(names, thumbs, strict=True) if thumb.by == "model"]
    assert by_model == [thumb.name for thumb in thumbs if thumb.by == "model"]


def plain_two_means(x: FloatArray) -> BoolArray:
    centred = x - x.mean(0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    second: BoolArray = along > np.median(along)
    for _ in range(20):
        centres = np.stack([x[~second].mean(0), x[second].mean(0)])
        second = np.asarray(((x[:, None] - centres) ** 2).sum(2).argmin(1) == 1)
    return second


@pytest.mark.parametrize("seed", range(5))
def test_two_means_finds_the_halves_that_a_plain_one_finds(seed: int) -> None:
    rng = generator(seed, "halves")
    x = rng.normal(size=(200, 30)).astype(np.float32) + 2 * rng.integers(0, 2, (200, 1)).astype(np.float32)
    found, distance = two_means(x)
    plain = plain_two_means(x.astype(np.float64))
    assert np.array_equal(found, plain) or np.array_equal(found, ~plain)
    centres = np.stack([x[~found].mean(0), x[found].mean(0)])
    np.testing.assert_allclose(distance, ((x - centres[found.astype(int)]) ** 2).sum(1), rtol=1e-4)


def test_threads_that_write_without_a_pause_all_get_their_turn(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    with Store(path, create=True) as store:
        store.add_rows(["k"] * 200, [str(row) for row in range(200)], np.zeros(200, bool))

    def write(first: int) -> None:
        with Store(path) as own:
            for row in range(first, 200, 4):
                own.append([LabelEvent("skip", "ann", "human", row=row)])

    threads = [threading.Thread(target=write, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(path) as store:
        assert sorted(cast(int, event.row) for event in store.events()) == list(range(200))
