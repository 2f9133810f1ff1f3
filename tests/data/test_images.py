"""The decoder turns every allowed file into upright RGB and every other one into a short reason, never a hang."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import struct
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from agcd.data import depth, images
from agcd.data.images import FORMATS, ImageError, decode, header, probe, read_file
from agcd.errors import DataError
from support.inputs import png16


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def noise(size: tuple[int, int] = (40, 30)) -> Image.Image:
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def png_header(width: int, height: int) -> bytes:
    """A PNG that promises many pixels and holds none."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def tiff16(values: np.ndarray[Any, Any], is_packed: bool) -> bytes:
    """Colours as a TIFF of 16 bits, written by hand: Pillow stores colours in 8 bits."""
    height, width, _ = values.shape
    body = values.astype("<u2").tobytes()
    body = zlib.compress(body) if is_packed else body
    start = 8 + 2 + 9 * 12 + 4
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, start), (259, 3, 1, 8 if is_packed else 1)]
    tags += [(262, 3, 1, 2), (273, 4, 1, start + 6), (277, 3, 1, 3), (278, 4, 1, height), (279, 4, 1, len(body))]
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, 9) + entries + bytes(4) + struct.pack("<HHH", 16, 16, 16) + body


def pixel(image: Image.Image, x: int = 0, y: int = 0) -> tuple[int, ...]:
    return tuple(np.asarray(image)[y, x].tolist())


@pytest.mark.parametrize("kind", FORMATS)
def test_every_allowed_format_decodes_to_rgb_of_its_size(kind: str) -> None:
    image = decode(encoded(noise(), kind))
    assert (image.mode, image.size) == ("RGB", (40, 30))
    assert probe(encoded(noise(), kind)) is None


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_formats_keep_every_pixel(kind: str) -> None:
    assert np.array_equal(np.asarray(decode(encoded(noise(), kind))), np.asarray(noise()))


# What each orientation means: the stored array as a function of the upright one.
STORED = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: a.transpose(1, 0, 2)[::-1],
    7: lambda a: a.transpose(1, 0, 2)[::-1, ::-1],
    8: lambda a: a.transpose(1, 0, 2)[:, ::-1],
}


@settings(max_examples=40, deadline=None)
@given(
    orientation=st.integers(1, 8),
    width=st.integers(1, 9),
    height=st.integers(1, 9),
    kind=st.sampled_from(["PNG", "TIFF", "WEBP"]),
)
def test_all_eight_exif_orientations_decode_to_the_same_upright_image(
    orientation: int, width: int, height: int, kind: str
) -> None:
    upright = np.asarray(noise((width, height)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](upright)))
    data = encoded(stored, kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
    assert np.array_equal(np.asarray(decode(data)), upright)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_is_ignored(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert decode(encoded(noise(), "JPEG", exif=exif)).size == (40, 30)


@pytest.mark.parametrize(
    "exif", [b"Exif\x00\x00garbage", b"Exif\x00\x00II*\x00\xff\xff\xff\xff", b"Exif\x00\x00" + b"A" * 60000]
)
def test_broken_or_huge_exif_does_not_cost_the_picture(exif: bytes) -> None:
    assert decode(encoded(noise(), "JPEG", exif=exif)).size == (40, 30)


def test_a_malformed_colour_profile_is_ignored_and_not_passed_on() -> None:
    image = decode(encoded(noise(), "PNG", icc_profile=b"no profile at all"))
    assert np.array_equal(np.asarray(image), np.asarray(noise()))
    assert image.info == {}


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparent_pixels_become_white_and_opaque_ones_stay(mode: str) -> None:
    image = Image.new(mode, (2, 1))
    image.putpixel((1, 0), (10, 20, 30, 255) if mode == "RGBA" else (10, 255))
    decoded = decode(encoded(image))
    assert pixel(decoded, 0) == (255, 255, 255)
    assert pixel(decoded, 1) == ((10, 20, 30) if mode == "RGBA" else (10, 10, 10))


def test_half_transparent_red_on_white_is_pink() -> None:
    assert pixel(decode(encoded(Image.new("RGBA", (1, 1), (255, 0, 0, 128))))) == (255, 127, 127)


@pytest.mark.parametrize("transparency", [0, bytes([0, 255])])
def test_a_palette_with_alpha_is_laid_on_white(transparency: int | bytes) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([1, 2, 3, 200, 100, 50])
    image.putpixel((1, 0), 1)
    decoded = decode(encoded(image, "PNG", transparency=transparency))
    assert [pixel(decoded, 0), pixel(decoded, 1)] == [(255, 255, 255), (200, 100, 50)]


def test_cmyk_becomes_the_colour_it_prints() -> None:
    decoded = decode(encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=95))
    red, green, blue = pixel(decoded, 4, 4)
    assert red > 240
    assert max(green, blue) < 15


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped(kind: str) -> None:
    values = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    decoded = np.asarray(decode(encoded(Image.fromarray(values), kind)))
    assert decoded[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_twelve_of_sixteen_bits_become_black_to_white_and_not_black_alone(dtype: str) -> None:
    values = np.arange(4096, dtype=dtype).reshape(64, 64)
    shades = np.asarray(decode(encoded(Image.fromarray(values), "TIFF")))[..., 0]
    assert (shades.min(), shades.max()) == (0, 255)
    assert abs(float(shades.mean()) - 127.5) < 1
    assert (np.diff(shades.ravel().astype(int)) >= 0).all()


@pytest.mark.parametrize("kind", ["png", "tiff", "packed tiff"])
def test_colours_of_twelve_bits_in_sixteen_become_dark_to_bright(kind: str) -> None:
    values = (np.arange(32 * 32 * 3) % 4096).astype(np.uint16).reshape(32, 32, 3)
    data = png16(values) if kind == "png" else tiff16(values, kind == "packed tiff")
    expected = np.clip(values / values.max() * 255, 0, 255)
    assert np.abs(np.asarray(decode(data)) - expected).max() <= 1.5


def test_colours_that_use_all_of_sixteen_bits_keep_their_upper_byte() -> None:
    values = (np.arange(32 * 32 * 3) * 20).astype(np.uint16).reshape(32, 32, 3)
    assert np.array_equal(np.asarray(decode(png16(values))), values >> 8)


def test_a_heic_picture_is_read_or_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    heif = pytest.importorskip("pillow_heif")
    buffer = io.BytesIO()
    heif.from_pillow(noise((64, 48)).resize((64, 48))).save(buffer)
    assert decode(buffer.getvalue()).size == (64, 48)
    assert header(buffer.getvalue()).format == "HEIF"
    with pytest.raises(ImageError):
        decode(buffer.getvalue()[:-100])
    monkeypatch.setattr(images, "_has_heif", lambda: False)
    assert probe(buffer.getvalue()) == 'HEIC pictures are read after: pip install "agcd[heif]"'


def test_a_few_dead_and_hot_pixels_do_not_set_the_range_of_sixteen_bits() -> None:
    values = np.full((100, 100), 1000, np.uint16)
    values[50:] = 2000
    values[0, :5], values[0, 5:10] = 0, 65535
    shades = np.asarray(decode(encoded(Image.fromarray(values))))[..., 0]
    assert (shades[1, 0], shades[99, 0]) == (0, 255)


def test_a_few_spots_on_an_even_ground_are_seen() -> None:
    values = np.full((100, 100), 700, np.uint16)
    values[3, 4] = 900
    shades = np.asarray(decode(encoded(Image.fromarray(values))))[..., 0]
    assert (shades[0, 0], shades[3, 4]) == (0, 255)


def test_signed_sixteen_bits_are_stretched_too() -> None:
    values = np.array([[-300, 0, 300]], dtype=np.int32)
    assert np.asarray(decode(encoded(Image.fromarray(values), "TIFF")))[0, :, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "F", "I", "I;16", "CMYK", "L", "1"])
def test_strips_give_the_pixels_of_the_whole(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grey = np.random.default_rng(1).integers(0, 4000, (37, 23))
    kinds = {"F": np.float32, "I": np.int32, "I;16": np.uint16}
    image = Image.fromarray(grey.astype(kinds[mode])) if mode in kinds else noise((23, 37)).convert(mode)
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.fromarray((grey % 256).astype(np.uint8)))
    data = encoded(image, "TIFF" if mode in ("F", "I", "CMYK") else "PNG", **{"transparency": 7} if mode == "P" else {})
    whole = np.asarray(decode(data))
    monkeypatch.setattr(depth, "_STRIP_PIXELS", 100)
    assert np.array_equal(np.asarray(decode(data)), whole)


def test_float_pixels_with_nan_are_stretched_to_the_full_range() -> None:
    values = np.array([[0.0, 0.5, 1.0, np.nan]], dtype=np.float32)
    assert np.asarray(decode(encoded(Image.fromarray(values), "TIFF")))[0, :, 0].tolist() == [0, 128, 255, 0]


@pytest.mark.parametrize("mode", ["1", "L", "P"])
def test_grey_and_palette_images_become_rgb(mode: str) -> None:
    assert decode(encoded(noise().convert(mode))).mode == "RGB"


@pytest.mark.parametrize("size", [(1, 1), (1, 100_000), (100_000, 1)])
def test_tiny_and_thin_images_decode(size: tuple[int, int]) -> None:
    assert decode(encoded(Image.new("L", size, 7))).size == size


def test_only_the_first_frame_of_an_animation_is_read() -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue", "green")]
    for kind in ("GIF", "PNG", "TIFF"):
        assert pixel(decode(encoded(frames[0], kind, save_all=True, append_images=frames[1:]))) == (255, 0, 0)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_truncated_files_are_errors(kind: str, share: float) -> None:
    data = encoded(noise((200, 150)), kind)
    with pytest.raises(ImageError):
        decode(data[: int(len(data) * share)])


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(FORMATS), data=st.data())
def test_damaged_bytes_give_an_image_or_an_image_error_and_nothing_else(kind: str, data: st.DataObject) -> None:
    content = bytearray(encoded(noise((16, 16)), kind))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ImageError):
        assert decode(bytes(content)).mode == "RGB"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"just text",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        b"%PDF-1.7",
        b"8BPS" + b"\0" * 40,
        b"SIMPLE  =                    T".ljust(2880),
        b"icns\0\0\0\x08",
        b"\0\0\0\x18ftypheic" + b"\0" * 20,
    ],
)
def test_what_is_not_on_the_allow_list_is_refused_with_a_reason(content: bytes) -> None:
    assert probe(content)
    with pytest.raises(ImageError):
        decode(content)


@pytest.mark.parametrize("kind", ["PPM", "ICO", "TGA", "PCX"])
def test_formats_that_pillow_knows_but_we_do_not_allow_are_refused(kind: str) -> None:
    assert "not an image of a supported format" in str(probe(encoded(noise(), kind)))


def test_a_wrong_suffix_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(encoded(noise(), "PNG"))
    assert decode(path).size == (40, 30)


def test_html_after_a_jpeg_decodes_as_the_jpeg_alone() -> None:
    data = encoded(noise(), "JPEG")
    assert np.array_equal(np.asarray(decode(data + b"<script>alert(1)</script>")), np.asarray(decode(data)))


@pytest.mark.parametrize("size", [(50_000, 50_000), (12_000, 12_000), (8_001, 8_000)])
def test_too_many_pixels_are_refused_from_the_header(size: tuple[int, int]) -> None:
    bomb = png_header(*size)
    assert "allowed" in str(probe(bomb))
    with pytest.raises(ImageError, match="allowed"):
        decode(bomb)


def test_a_gif_that_promises_too_many_pixels_is_refused() -> None:
    bomb = bytearray(encoded(Image.new("P", (4, 4)), "GIF"))
    bomb[6:10] = struct.pack("<HH", 60_000, 60_000)
    assert "allowed" in str(probe(bytes(bomb)))


def test_the_pixel_limit_is_exact() -> None:
    data = encoded(noise((10, 10)))
    assert decode(data, max_pixels=100).size == (10, 10)
    with pytest.raises(ImageError, match="10×10 pixels, more than the 99 allowed"):
        decode(data, max_pixels=99)


def test_large_files_are_refused_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "big.png"
    path.write_bytes(encoded(noise()))
    with pytest.raises(ImageError, match="more than the 10 allowed"):
        read_file(path, max_bytes=10)
    assert "more than the 10 allowed" in str(probe(path, max_bytes=10))


def test_draft_size_shrinks_jpegs_but_never_below_it() -> None:
    data = encoded(noise((800, 600)), "JPEG")
    assert decode(data, draft_size=100).size == (200, 150)
    assert decode(data, draft_size=601).size == (800, 600)
    assert decode(encoded(noise((800, 600))), draft_size=100).size == (800, 600)


def decode_in_time(path: Path) -> str:
    """The reason for refusing ``path``, found within five seconds."""
    reasons: list[str] = []

    def run() -> None:
        try:
            decode(path)
        except ImageError as error:
            reasons.append(error.reason)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=5)
    assert reasons, "decoding hangs"
    return reasons[0]


def test_fifo_directory_and_device_are_refused_without_hanging(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "device.jpg").symlink_to("/dev/zero")
    for name in ("fifo.jpg", "folder.jpg", "device.jpg"):
        assert decode_in_time(tmp_path / name) == "not a regular file"


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.jpg"))
        assert "cannot be read" in decode_in_time(tmp_path / "s.jpg")


def test_missing_files_and_impossible_names_are_errors_that_name_the_path(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.jpg: cannot be read \(No such file or directory\)\."):
        decode(tmp_path / "gone.jpg")
    assert "cannot be read" in str(probe(tmp_path / "nul\0.jpg"))
    assert "cannot be read" in str(probe(tmp_path / ("x" * 5000)))
