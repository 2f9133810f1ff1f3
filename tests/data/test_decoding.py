"""Large and risky files are decoded in limited processes within one budget; what dies there costs nobody else."""

from __future__ import annotations

import io
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from agcd.app.web.pictures import SIZES, PictureGone
from agcd.data import decoding, images
from agcd.data.decoding import Budget, Decoder, Task, bytes_apart
from agcd.data.images import ImageError, decode, decoded_bytes, header, probe, scanned_thumbnail, thumbnail
from agcd.io import digest_bytes
from support.hostile import encoded, float_tiff, hostile_folder, many_scans, wide_tile_tiff, with_two_classes
from support.memory import watched
from support.pictures import quarters, scanned, size_of

LIMIT = 1_500_000_000


def written(folder: Path, content: bytes) -> Path:
    path = folder / "picture"
    path.write_bytes(content)
    return path


# --------------------------------------------------------------------------------------------------- what it costs


@pytest.mark.parametrize(
    ("content", "per_pixel"),
    [
        (encoded(Image.new("RGB", (100, 100)), "PNG"), 4),
        (encoded(Image.new("L", (100, 100)), "PNG"), 5),
        (encoded(Image.new("RGBA", (100, 100)), "PNG"), 8),
        (encoded(Image.fromarray(np.zeros((100, 100), np.uint16)), "PNG"), 5),
        (encoded(Image.fromarray(np.zeros((100, 100), np.float32)), "TIFF", compression="tiff_lzw"), 8),
        (encoded(Image.new("RGB", (100, 100)), "JPEG", progressive=True), 10),
        (encoded(Image.new("RGBA", (100, 100)), "WEBP"), 16),
    ],
)
def test_the_header_tells_what_decoding_takes_with_all_copies(content: bytes, per_pixel: int) -> None:
    assert header(content).decoded_bytes == per_pixel * 100 * 100


def test_a_draft_takes_less_but_for_the_coefficients_of_a_progressive_one() -> None:
    plain, progressive = (encoded(Image.new("RGB", (800, 800)), "JPEG", progressive=p) for p in (False, True))
    assert header(plain, draft_size=100).decoded_bytes == 4 * 100 * 100
    assert header(progressive, draft_size=100).decoded_bytes == 4 * 100 * 100 + 6 * 800 * 800


def test_a_tile_larger_than_its_picture_counts() -> None:
    assert header(wide_tile_tiff(16_000)).decoded_bytes > 16_000**2


def test_what_would_take_more_than_the_budget_is_refused_from_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_DECODED_BYTES", 2**20)
    content = encoded(Image.new("RGBA", (500, 500)), "PNG")
    assert probe(content) == "decoding takes 1 MB, more than the 1 allowed"
    with pytest.raises(ImageError, match="more than the 1 allowed"):
        decode(content)
    assert "damaged" not in str(probe(wide_tile_tiff(40_000)))


def test_the_estimate_of_a_png_decodes_nothing() -> None:
    image = PngImageFile(io.BytesIO(encoded(Image.new("RGB", (50, 50)), "PNG")))
    assert decoded_bytes(image) == 4 * 50 * 50
    assert image.tile, "Pillow decodes a PNG when it is asked for its EXIF"


# ------------------------------------------------------------------------------------------------ where it happens


@pytest.mark.parametrize(
    ("content", "is_apart"),
    [
        (encoded(Image.new("RGB", (4000, 3000)), "PNG"), False),
        (encoded(Image.new("RGB", (4000, 3200)), "PNG"), True),
        (encoded(Image.new("RGB", (6000, 4000)), "JPEG"), False),
        (encoded(quarters(), "TIFF"), False),
        (encoded(quarters(), "TIFF", compression="tiff_lzw"), True),
        (many_scans(10, 64), False),
        (many_scans(200, 64), True),
        (b"no picture", False),
    ],
)
def test_large_and_risky_pictures_are_decoded_apart(tmp_path: Path, content: bytes, is_apart: bool) -> None:
    path = written(tmp_path, content)
    assert bool(bytes_apart(Task(path, 160, thumbnail, (path, 160)))) == is_apart


def test_a_file_that_is_not_there_needs_no_process(tmp_path: Path) -> None:
    assert bytes_apart(Task(tmp_path / "gone", 160, thumbnail, ())) == 0
    with pytest.raises(ImageError, match="cannot be read"):
        Decoder()(tmp_path / "gone", 160, thumbnail, tmp_path / "gone", 160)


def test_pictures_and_reasons_come_back_from_a_process_as_they_are_made_here(tmp_path: Path) -> None:
    content = encoded(quarters(), "TIFF", compression="tiff_lzw")
    path, key = written(tmp_path, content), digest_bytes(content)
    decoder = Decoder(1)
    found = decoder(path, 96, scanned_thumbnail, path, key, 96)
    assert np.array_equal(np.asarray(found), np.asarray(thumbnail(content, 96)))
    with pytest.raises(ImageError, match="changed since it was scanned") as caught:
        decoder(path, 96, scanned_thumbnail, path, digest_bytes(b""), 96)
    assert caught.value.reason == "the file has changed since it was scanned"
    decoder.close()


def test_an_image_error_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(ImageError("too large", Path("a.png"))))
    assert (error.reason, str(error)) == ("too large", "a.png: too large.")


def test_a_picture_that_kills_its_decoder_is_gone_and_the_others_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    risky = encoded(quarters(), "TIFF", compression="tiff_lzw")
    pictures = scanned(tmp_path, risky, encoded(quarters(), "TIFF", compression="tiff_deflate"))
    with monkeypatch.context() as patch:
        patch.setattr("agcd.app.web.pictures.scanned_jpeg", die)
        with pytest.raises(PictureGone, match="Picture 0 cannot be shown: its decoder died"):
            pictures.jpeg(0, 160)
    assert size_of(pictures.jpeg(1, 160)) == (160, 80)
    assert size_of(pictures.jpeg(0, 160)) == (160, 80), "it is tried again when it is asked for again"


def die(*args: object) -> None:
    """Stands in for a decoder that crashes."""
    os.kill(os.getpid(), signal.SIGKILL)


def take_memory(path: Path) -> str:
    """Stands in for a decoder that takes more than was estimated."""
    try:
        return f"{len(bytearray(3 * 2**30))} bytes"
    except MemoryError:
        return "refused"


def test_a_decoding_process_cannot_take_all_memory(tmp_path: Path) -> None:
    path = written(tmp_path, encoded(quarters(), "TIFF", compression="tiff_lzw"))
    decoder = Decoder(1)
    assert decoder(path, 96, take_memory, path) == "refused"
    decoder.close()


def test_a_decoder_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, encoded(quarters(), "TIFF", compression="tiff_lzw"))
    with pytest.raises(ImageError, match="its decoder died"):
        Decoder(1)(path, 96, hang, path)


def hang(path: Path) -> None:
    decoding_alarm = signal.alarm(1)
    assert decoding_alarm > 1, "a worker decodes against the clock"
    time.sleep(60)


def test_large_pictures_wait_for_room_and_never_for_each_other() -> None:
    budget, most, now, lock = Budget(n_bytes=4 * decoding._UNIT), [0], [0], threading.Lock()

    def use(n: int) -> None:
        with budget.held(n * decoding._UNIT):
            with lock:
                now[0] += min(n, 4)
                most[0] = max(most[0], now[0])
            time.sleep(0.002)
            with lock:
                now[0] -= min(n, 4)

    threads = [threading.Thread(target=use, args=(1 + i % 5,), daemon=True) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert now == [0], "some wait for ever"
    assert 0 < most[0] <= 4


# ------------------------------------------------------------------------------------------- what whole programs take


def run_cli(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agcd.cli", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def peak_of_init(project: Path, folder: Path) -> tuple[int, str]:
    process = run_cli("init", str(project), "--images", str(folder), "--set", "backbone.name=toy")
    with watched(process.pid) as peak:
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    return peak.n_bytes, output


def peak_of_serve(project: Path, n_rows: int) -> tuple[int, list[int]]:
    """While every picture is fetched at every size, by several at once; the statuses too."""
    process = run_cli("serve", str(project), "--port", "0", "--by-hand")
    assert process.stdout is not None
    try:
        with watched(process.pid) as peak:
            found = re.search(r"http\S+", process.stdout.readline())
            assert found
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            opener.open(found[0]).read()
            base = found[0].partition("/login")[0]
            statuses: list[int] = []

            def fetch(size: int) -> None:
                for row in range(n_rows):
                    try:
                        statuses.append(opener.open(f"{base}/image/{row}?size={size}", timeout=600).status)
                    except HTTPError as error:
                        statuses.append(error.code)

            threads = [threading.Thread(target=fetch, args=(size,)) for size in SIZES]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return peak.n_bytes, statuses
    finally:
        process.terminate()
        process.communicate()


def test_float_pictures_of_64_million_pixels_do_not_take_the_memory(tmp_path: Path) -> None:
    folder = with_two_classes(tmp_path / "images")
    content = float_tiff()
    assert len(content) < 1_000_000
    for i in range(2):
        (folder / f"{i}.tif").write_bytes(content + bytes(i))
    peak, output = peak_of_init(tmp_path / "project", folder)
    assert "2 grey images of 16 or more bits" in output
    assert peak < LIMIT


@pytest.mark.slow
def test_a_hostile_folder_never_takes_more_than_one_and_a_half_gigabytes(tmp_path: Path) -> None:
    peak, output = peak_of_init(tmp_path / "project", hostile_folder(tmp_path / "images"))
    n_rows = int(output.split(" images: ")[0].rpartition("\n")[2])
    served, statuses = peak_of_serve(tmp_path / "project", n_rows)
    assert set(statuses) == {200}  # what cannot be decoded was set aside
    assert statuses.count(200) > 4 * 30
    assert (peak < LIMIT, served < LIMIT) == (True, True), (peak, served)
