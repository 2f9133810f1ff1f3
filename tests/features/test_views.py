"""Views depend on content, number and seed only; view 0 is the test view."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agcd.features.views import Bad, ViewJob, ViewSpec, load_views, render, view_box
from agcd.io import digest_bytes

SPEC = ViewSpec(32)


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def test_resize_keeps_the_reference_ratio() -> None:
    assert ViewSpec(224).resize == 256
    assert ViewSpec(448).resize == 512


@given(st.text(max_size=20), st.integers(0, 2**31 - 1), st.integers(32, 300), st.integers(32, 300))
def test_every_box_lies_inside_the_image(key: str, view: int, width: int, height: int) -> None:
    left, top, _ = view_box(key, view, (width, height), SPEC)
    assert 0 <= left <= width - 32
    assert 0 <= top <= height - 32


def test_view_zero_is_centred_and_not_flipped() -> None:
    assert view_box("any", 0, (50, 37), SPEC) == (9, 2, False)


def test_views_of_one_image_differ_and_half_are_flipped() -> None:
    boxes = [view_box("key", view, (60, 60), SPEC) for view in range(1, 201)]
    assert len(set(boxes)) > 150
    assert 70 < sum(flip for _, _, flip in boxes) < 130
    assert {left for left, _, _ in boxes} == set(range(29)), "every offset is possible, both ends included"


def test_a_view_does_not_depend_on_which_others_are_asked_for() -> None:
    image = noise(60, 45)
    together = render(image, "key", [0, 1, 2, 3], SPEC)
    assert np.array_equal(together[2], render(image, "key", [2], SPEC)[0])
    assert not np.array_equal(together[2], render(image, "other", [2], SPEC)[0])
    assert not np.array_equal(together[2], render(image, "key", [2], ViewSpec(32, seed=1))[0])


def test_a_flipped_view_is_the_mirror_of_its_box() -> None:
    image = noise(37, 37)  # already at the resized length, so pixels are copied
    view = next(v for v in range(1, 50) if view_box("key", v, (37, 37), SPEC)[2])
    left, top, _ = view_box("key", view, (37, 37), SPEC)
    expected = np.asarray(image)[top : top + 32, left : left + 32][:, ::-1]
    assert np.array_equal(render(image, "key", [view], SPEC)[0], expected)


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (31, 33), (640, 480)])
def test_every_shape_of_image_gives_full_crops(size: tuple[int, int]) -> None:
    assert render(noise(*size), "key", [0, 1], SPEC).shape == (2, 32, 32, 3)


def test_a_file_becomes_views_of_its_content(tmp_path: Path) -> None:
    content = png(noise(50, 40))
    (tmp_path / "a.png").write_bytes(content)
    key = digest_bytes(content)
    crops = load_views(ViewJob(str(tmp_path / "a.png"), key, (0, 1)), SPEC)
    assert isinstance(crops, np.ndarray)
    assert np.array_equal(crops, render(noise(50, 40), key, [0, 1], SPEC))


def test_a_damaged_file_is_lastingly_bad_and_a_missing_one_is_not(tmp_path: Path) -> None:
    content = png(noise(50, 40))[:-400]
    (tmp_path / "cut.png").write_bytes(content)
    cut = load_views(ViewJob(str(tmp_path / "cut.png"), digest_bytes(content), (0,)), SPEC)
    gone = load_views(ViewJob(str(tmp_path / "gone.png"), "key", (0,)), SPEC)
    assert isinstance(cut, Bad)
    assert cut.lasting
    assert isinstance(gone, Bad)
    assert not gone.lasting


def test_a_file_that_changed_after_the_scan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(noise(40, 40)))
    found = load_views(ViewJob(str(tmp_path / "a.png"), digest_bytes(b"what it was"), (0,)), SPEC)
    assert found == Bad("the file changed after it was scanned", lasting=False)
