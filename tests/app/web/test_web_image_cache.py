"""A picture is decoded once and kept; whatever happens to the cache, the picture is shown."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from agcd.app.web.pictures import PictureGone, Pictures
from agcd.io import digest_bytes
from support.pictures import (
    counted,
    encoded,
    quarters,
    replace_by_fifo,
    replace_by_folder,
    replace_by_loop,
    replace_by_nothing,
    scanned,
    size_of,
)


def kept(folder: Path, content: bytes, size: int = 160) -> Path:
    key = digest_bytes(content)
    return folder / "cache" / str(size) / key[3:5] / f"{key}.jpg"


def test_a_picture_is_decoded_once_and_kept_under_the_name_of_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    content = encoded(quarters())
    pictures = scanned(tmp_path, content, content)
    jpeg = pictures.jpeg(0, 160)
    assert kept(tmp_path, content).read_bytes() == jpeg
    assert pictures.jpeg(0, 160) == pictures.jpeg(1, 160) == jpeg
    assert len(calls) == 1
    pictures.jpeg(0, 320)
    assert len(calls) == 2


def test_a_kept_picture_is_shown_although_its_file_is_away(tmp_path: Path) -> None:
    pictures = scanned(tmp_path, encoded(quarters()))
    jpeg = pictures.jpeg(0, 160)
    (tmp_path / "images" / "0.img").unlink()
    assert pictures.jpeg(0, 160) == jpeg
    with pytest.raises(PictureGone, match="cannot be read"):
        pictures.jpeg(0, 320)


@pytest.mark.parametrize("damage", [b"", b"<script>", encoded(quarters())[:200]])
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage: bytes) -> None:
    content = encoded(quarters())
    pictures = scanned(tmp_path, content)
    jpeg = pictures.jpeg(0, 160)
    kept(tmp_path, content).write_bytes(damage)
    assert pictures.jpeg(0, 160) == jpeg
    assert kept(tmp_path, content).read_bytes() == jpeg


@pytest.mark.parametrize("replace", [replace_by_nothing, replace_by_fifo, replace_by_folder, replace_by_loop])
def test_an_entry_that_is_no_file_does_not_cost_the_picture(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    content = encoded(quarters())
    pictures = scanned(tmp_path, content)
    jpeg = pictures.jpeg(0, 160)
    replace(kept(tmp_path, content))
    assert pictures.jpeg(0, 160) == jpeg


def test_a_full_disk_does_not_cost_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("agcd.io.os.fsync", full)
    content = encoded(quarters())
    assert size_of(scanned(tmp_path, content).jpeg(0, 160)) == (160, 80)
    assert list(kept(tmp_path, content).parent.iterdir()) == []


def test_a_cache_that_cannot_be_made_does_not_cost_the_picture(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert size_of(scanned(tmp_path, encoded(quarters())).jpeg(0, 160)) == (160, 80)


def at_once(pictures: Pictures, rows: list[int]) -> list[bytes]:
    """The pictures of ``rows``, each asked for by a thread of its own."""
    with ThreadPoolExecutor(len(rows)) as threads:
        return list(threads.map(lambda row: pictures.jpeg(row, 96), rows))


def test_eight_who_ask_for_the_same_picture_share_one_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, lambda: time.sleep(0.1))
    pictures = scanned(tmp_path, encoded(quarters()))
    answers = at_once(pictures, [0] * 8)
    assert len(calls) == 1
    assert len(set(answers)) == 1


def test_at_most_four_pictures_are_decoded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard, running, most = threading.Lock(), [0], [0]

    def busy() -> None:
        with guard:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.05)
        with guard:
            running[0] -= 1

    calls = counted(monkeypatch, busy)
    pictures = scanned(tmp_path, *(encoded(quarters(20 + 2 * i, 20)) for i in range(16)))
    at_once(pictures, list(range(16)))
    assert len(calls) == 16
    assert 1 < most[0] <= 4
