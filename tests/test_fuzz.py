"""Whatever a file holds, decoders and readers give an answer or one of our errors, and memory stays bounded.

``make fuzz`` goes on for ``FUZZ_SECONDS`` with seeds of its own; a part with fixed seeds is in every test run.
"""

from __future__ import annotations

import io
import json
import os
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from agcd.app.answers import read_answers
from agcd.app.create import read_settings
from agcd.data import images
from agcd.data.arrays import from_npz
from agcd.data.images import FORMATS, ImageError, decode, header, probe, thumbnail
from agcd.data.label_studio import parse_label_studio
from agcd.data.sources import load_dataset
from agcd.errors import AgcdError
from support.hostile import encoded, many_scans, wide_tile_tiff
from support.mutants import mutants

SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))
MAX_PIXELS = 4_000_000
BUDGET = 128 * 2**20
SLACK = 160 * 2**20
"""What strips, files and earlier garbage may take beside the budget."""


def valid_pictures(kind: str) -> list[bytes]:
    colours = Image.effect_noise((40, 30), 80).convert("RGB")
    palette, frame = colours.convert("P"), colours.rotate(9)
    grey16 = Image.fromarray((np.arange(1200, dtype=np.uint16) * 50).reshape(30, 40))
    turned = Image.Exif()
    turned[0x0112] = 6
    odd: dict[str, list[tuple[Image.Image, dict[str, Any]]]] = {
        "JPEG": [(colours, {"progressive": True, "exif": turned}), (colours.convert("CMYK"), {})],
        "PNG": [(grey16, {}), (palette, {"transparency": 3}), (colours, {"save_all": True, "append_images": [frame]})],
        "WEBP": [
            (colours.convert("RGBA"), {"lossless": True}),
            (colours, {"save_all": True, "append_images": [frame], "exif": turned}),
        ],
        "TIFF": [
            (grey16, {}),
            (colours, {"compression": "tiff_lzw", "exif": turned}),
            (colours, {"compression": "jpeg"}),
            (Image.fromarray(np.eye(30, dtype=np.float32)), {"compression": "tiff_adobe_deflate"}),
        ],
        "GIF": [(palette, {"save_all": True, "append_images": [frame.convert("P")]})],
        "BMP": [(palette, {}), (colours.convert("1"), {})],
        "AVIF": [(colours.convert("RGBA"), {"speed": 10})],
        "JPEG2000": [(grey16, {}), (colours.convert("RGBA"), {"irreversible": True})],
    }
    made = {"JPEG": [many_scans(3, 32)], "TIFF": [wide_tile_tiff(64)]}.get(kind, [])
    return [encoded(colours, kind), *(encoded(image, kind, **options) for image, options in odd[kind]), *made]


def peak_resident() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Little memory, and a look at the end whether it was kept."""
    monkeypatch.setattr(images, "MAX_DECODED_BYTES", BUDGET)
    before = peak_resident()
    yield
    assert peak_resident() - before < BUDGET + SLACK


def check_picture(content: bytes) -> None:
    refused = probe(content, max_pixels=MAX_PIXELS)
    with suppress(ImageError):
        assert header(content, draft_size=64).decoded_bytes > 0
    with suppress(ImageError):
        assert decode(content, max_pixels=MAX_PIXELS).mode == "RGB"
        assert refused is None, "what the header refuses is not decoded"
        assert max(thumbnail(content, 96).size) <= 96


def for_seconds(seconds: float) -> Iterator[int]:
    """Numbers, until the time is over."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        yield n
        n += 1


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.usefixtures("small_budget")
def test_damaged_pictures_are_decoded_or_refused(kind: str) -> None:
    for content in islice(mutants(valid_pictures(kind), seed=1), 500):
        check_picture(content)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.usefixtures("small_budget")
def test_damaged_pictures_are_decoded_or_refused_for_as_long_as_told(kind: str) -> None:
    seed = time.time_ns()
    source = mutants(valid_pictures(kind), seed)
    for n, content in zip(for_seconds(SECONDS / 2 / len(FORMATS)), source, strict=False):
        try:
            check_picture(content)
        except BaseException:
            raise AssertionError(f"seed {seed}, mutant {n}: {content!r}") from None


# ------------------------------------------------------------------------------------------------------ other files


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"path": ["a.png", "b.png"], "label": ["x", None], "split": ["train", "test"]}), buffer)
    return buffer.getvalue()


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.eye(4), y=np.arange(4))
    return buffer.getvalue()


def unclosed_npz() -> bytes:
    """An archive whose array has a header with a bracket that is never closed."""
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, np.eye(4))
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("x.npy", array.getvalue().replace(b" \n", b"(\n", 1))
    return archive.getvalue()


def patched_npz() -> bytes:
    """An archive that says of its first member that it is "compressed patched data"."""
    content = bytearray(npz())
    content[content.find(b"PK\x01\x02") + 8] |= 0x20
    return bytes(content)


TASKS = [
    {"data": {"path": "a.png"}, "annotations": [{"completed_by": 3, "result": [
        {"type": "choices", "value": {"choices": ["cat"]}}]}]},
    {"path": "b.png", "choice": "dog"},
]  # fmt: skip
PATHS = ("a.png", "b.png")
COCO = {
    "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
    "annotations": [{"image_id": 1, "category_id": 3}],
    "categories": [{"id": 3, "name": "x"}],
}
FIFTYONE = {"classes": ["x"], "labels": {"a": 0, "b": None}}
RECORDS = [{"path": "a.png", "label": 3}, {"path": "b.png", "label": None}]


def _read_label_studio(file: Path) -> object:
    return parse_label_studio(file.read_bytes(), PATHS, "me")


READERS: dict[str, tuple[Callable[[Path], object], list[bytes]]] = {
    "manifest.csv": (load_dataset, [b"path,label,split\na.png,x,train\nb.png,,test\n", b'path;label\n\'=a.png;"x"\n']),
    "manifest.parquet": (load_dataset, [parquet()]),
    "list.jsonl": (load_dataset, [b'{"file_name": "a.png", "label": "x"}\n{"file_name": "b.png"}\n']),
    "list.json": (load_dataset, [json.dumps(value).encode() for value in (COCO, FIFTYONE, TASKS, RECORDS)]),
    "embeddings.npz": (from_npz, [npz()]),
    "agcd.toml": (
        read_settings,
        [
            b'images = "here"\nn_slots = 5\n\n[backbone]\nname = "toy"\n[train]\nlr = 0.1\n',
            b'images = "x"\na = [[1]]\n',
        ],
    ),
    "answers.csv": (lambda file: read_answers(file, PATHS), [b"row,label\n0,cat\n1,dog\n", b"path,label\na.png,cat\n"]),
    "tasks.json": (_read_label_studio, [json.dumps(TASKS).encode(), json.dumps(TASKS[1:]).encode()]),
}


def check_reader(folder: Path, name: str, content: bytes) -> None:
    file = folder / name
    file.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[name][0](file)
    except AgcdError as error:
        told = str(error)
    else:
        told = "read"
    assert told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i, name in enumerate(PATHS):
        Image.effect_noise((20, 20), 40 + i).save(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused_in_our_words(name: str, folder: Path) -> None:
    for content in islice(mutants(READERS[name][1], seed=2), 500):
        check_reader(folder, name, content)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused_for_as_long_as_told(name: str, folder: Path) -> None:
    seed = time.time_ns()
    for n, content in zip(for_seconds(SECONDS / 2 / len(READERS)), mutants(READERS[name][1], seed), strict=False):
        try:
            check_reader(folder, name, content)
        except BaseException as error:
            raise AssertionError(f"seed {seed}, mutant {n}: {content!r} gives {error!r}") from None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("agcd.toml", b"images = " + b"[" * 5000 + b"]" * 5000),
        ("agcd.toml", b'images = "x"\na = ' + b"{a=" * 5000 + b"1" + b"}" * 5000),
        ("agcd.toml", b"[" + b".".join([b"a"] * 5000) + b"]\n"),
        ("agcd.toml", b"\xff\xfe"),
        ("answers.csv", b"row,label\n" + b"9" * 5000 + b",cat\n"),
        ("tasks.json", b"[" * 100_000),
        ("list.json", b'[{"path": "\\ud800.png"}]'),
        ("list.json", b'{"images": [], "categories": [{"id": [1]}], "annotations": [{"category_id": {}}]}'),
        ("list.jsonl", b'{"path": ["a.png"]}'),
        ("tasks.json", b"[" + b"9" * 5000 + b"]"),
        ("manifest.csv", b"path,label\n" + b"x" * 200_000 + b",a\n"),
        ("manifest.parquet", parquet().replace(b"split", b"sp\xecit")),
        ("manifest.parquet", parquet().replace(b"a.png", b"a\xecpng")),
        ("embeddings.npz", patched_npz()),
        ("embeddings.npz", unclosed_npz()),
    ],
)
def test_extreme_files_are_one_sentence(name: str, content: bytes, folder: Path) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(AgcdError) as caught:
        READERS[name][0](folder / name)
    assert "\n" not in str(caught.value)
