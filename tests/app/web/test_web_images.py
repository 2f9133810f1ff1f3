"""Pictures are what was scanned, upright, small and encoded anew, or an error; never another file."""

from __future__ import annotations

import io
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from agcd.app.web.pictures import SIZES, NoSuchPicture, PictureGone, Pictures
from agcd.io import digest_bytes
from support.pictures import (
    COLOURS,
    Rows,
    corners,
    encoded,
    quarters,
    replace_by_device,
    replace_by_fifo,
    replace_by_folder,
    replace_by_loop,
    replace_by_nothing,
    scanned,
    size_of,
)

# -------------------------------------------------------------------------------------------------- what is shown


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP"])
def test_pictures_are_jpegs_that_fit_the_size(tmp_path: Path, size: int, kind: str) -> None:
    pictures = scanned(tmp_path, encoded(quarters(2400, 1200), kind))
    assert size_of(pictures.jpeg(0, size)) == (size, size // 2)
    assert corners(pictures.jpeg(0, size)) == list(COLOURS)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (30, 20), (96, 96)])
def test_small_pictures_are_not_enlarged(tmp_path: Path, width: int, height: int) -> None:
    pictures = scanned(tmp_path, encoded(Image.new("RGB", (width, height)), "PNG"))
    assert {size_of(pictures.jpeg(0, size)) for size in SIZES} == {(width, height)}


def test_a_very_thin_picture_keeps_at_least_one_pixel(tmp_path: Path) -> None:
    pictures = scanned(tmp_path, encoded(Image.new("L", (1, 100_000)), "PNG"))
    assert size_of(pictures.jpeg(0, 160)) == (1, 160)


STORED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How each orientation stores an upright picture; 1 stores it as it is."""


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_stand_upright_as_they_do_in_training(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = quarters()
    stored = upright if orientation == 1 else upright.transpose(STORED[orientation])
    jpeg = scanned(tmp_path, encoded(stored, exif=exif, quality=95)).jpeg(0, 160)
    assert size_of(jpeg) == (160, 80)
    assert corners(jpeg) == list(COLOURS)


def test_nothing_but_pixels_leaves_the_file(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "<script>alert(1)</script>"
    polyglot = encoded(quarters(), exif=exif, comment=b"<script>alert(2)</script>", icc_profile=b"<script>3</script>")
    jpeg = scanned(tmp_path, polyglot + b"<html><script>alert(4)</script>").jpeg(0, 1024)
    assert b"script" not in jpeg
    assert not Image.open(io.BytesIO(jpeg)).getexif()
    assert corners(jpeg) == list(COLOURS)


@pytest.mark.parametrize("size", [0, 1, 95, 161, 1025, 10**9, -96])
def test_other_sizes_are_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(NoSuchPicture, match="96, 160, 320, 1024"):
        scanned(tmp_path, encoded(quarters())).jpeg(0, size)


@pytest.mark.parametrize("row", [-1, 1, 10**12])
def test_rows_that_are_not_there_are_refused(tmp_path: Path, row: int) -> None:
    pictures = scanned(tmp_path, encoded(quarters()))
    with pytest.raises(NoSuchPicture, match="There is no picture"):
        pictures.jpeg(row, 96)
    with pytest.raises(NoSuchPicture):
        pictures.version(row)


# ------------------------------------------------------------------------------------------------ what is refused


def refused(pictures: Pictures, row: int = 0) -> str:
    """Why the picture is refused, found within five seconds."""
    reasons: list[str] = []

    def ask() -> None:
        try:
            pictures.jpeg(row, 160)
        except PictureGone as error:
            reasons.append(str(error))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout=5)
    assert reasons, "it was shown, or it hangs"
    return reasons[0]


def test_a_file_that_changed_since_the_scan_is_not_shown(tmp_path: Path) -> None:
    pictures = scanned(tmp_path, encoded(quarters()))
    (tmp_path / "images" / "0.img").write_bytes(encoded(Image.new("RGB", (50, 50), "red")))
    assert refused(pictures) == "Picture 0 cannot be shown: the file has changed since it was scanned."
    assert not (tmp_path / "cache").exists()


def test_a_link_swapped_after_the_scan_shows_nothing_of_its_new_goal(tmp_path: Path) -> None:
    private = tmp_path / "private.jpg"
    private.write_bytes(encoded(Image.new("RGB", (50, 50), "red")))
    pictures = scanned(tmp_path, encoded(quarters()), encoded(quarters()))
    for name, goal in (("0.img", private), ("1.img", Path("/etc/passwd"))):
        (tmp_path / "images" / name).unlink()
        (tmp_path / "images" / name).symlink_to(goal)
    assert "changed since it was scanned" in refused(pictures, 0)
    assert "changed since it was scanned" in refused(pictures, 1)


def test_a_folder_swapped_for_a_link_to_another_shows_nothing_of_it(tmp_path: Path) -> None:
    pictures = scanned(tmp_path, encoded(quarters()))
    (tmp_path / "images").rename(tmp_path / "moved")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "0.img").write_bytes(encoded(Image.new("RGB", (50, 50), "red")))
    (tmp_path / "images").symlink_to(tmp_path / "other")
    assert "changed since it was scanned" in refused(pictures)


@pytest.mark.parametrize("path", ["../private.jpg", "/etc/passwd", "../../../../../../etc/passwd", "x\0y", "x" * 5000])
def test_a_project_made_by_a_stranger_cannot_point_at_other_files(tmp_path: Path, path: str) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "private.jpg").write_bytes(encoded(quarters()))
    pictures = Pictures(Rows([path], [digest_bytes(b"something else")], tmp_path / "images"), tmp_path / "cache")
    assert "cannot be shown" in refused(pictures)


@pytest.mark.parametrize("key", ["../../private", "b2-../../private", "", "b2-", "b2-" + "A" * 32, "b3-" + "0" * 32])
def test_a_key_is_never_a_path(tmp_path: Path, key: str) -> None:
    (tmp_path / "private.jpg").write_bytes(encoded(quarters()))
    assert "another rule" in refused(Pictures(Rows(["0.img"], [key], tmp_path), tmp_path / "cache"))


@pytest.mark.parametrize(
    "replace", [replace_by_nothing, replace_by_fifo, replace_by_folder, replace_by_device, replace_by_loop]
)
def test_what_is_no_file_any_more_is_refused_without_hanging(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    pictures = scanned(tmp_path, encoded(quarters()))
    replace(tmp_path / "images" / "0.img")
    reason = refused(pictures)
    assert reason.endswith(".")
    assert str(tmp_path) not in reason, "the page need not know where the files are"


def bomb() -> bytes:
    """A GIF that promises 60,000 × 60,000 pixels."""
    content = bytearray(encoded(Image.new("P", (4, 4)), "GIF"))
    content[6:10] = struct.pack("<HH", 60_000, 60_000)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (encoded(quarters(), quality=95)[:-1500], "damaged"),
        (encoded(quarters(), "PNG")[:300], "damaged"),
        (bomb(), "allowed"),
        (b"", "empty"),
        (b"<html><script>alert(1)</script>", "not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "not an image"),
    ],
)
def test_what_cannot_be_decoded_is_an_error_and_stays_one(tmp_path: Path, content: bytes, words: str) -> None:
    pictures = scanned(tmp_path, content, encoded(quarters()))
    assert words in refused(pictures)
    assert words in refused(pictures)
    assert size_of(pictures.jpeg(1, 160)) == (160, 80)
