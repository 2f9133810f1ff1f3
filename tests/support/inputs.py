"""Inputs as people have them, each with what it must be understood to be: the table of docs/inputs.md."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agcd.data import images
from agcd.data.reading import DEFAULT_OPTIONS
from agcd.data.sources import Reading, SourceOptions, read_source
from agcd.errors import AgcdError

SIDE = 24


@dataclass(frozen=True)
class Input:
    """One thing that somebody may give to ``agcd init``."""

    title: str
    build: Callable[[Path], Path | None]
    """Makes it inside an empty folder called ``photos``, or gives the path that is read in its place."""
    classes: dict[str, int] = field(default_factory=dict)
    """Labels by class, of training pictures."""
    unlabelled: int = 0
    test: int = 0
    aside: dict[str, str] = field(default_factory=dict)
    """What is set aside, with a piece of the reason."""
    doubt: str = ""
    """A piece of what it says where it is not sure."""
    error: str = ""
    """A piece of the sentence that refuses it."""
    tree: str = ""
    """A piece of what it says it has understood."""
    options: SourceOptions = DEFAULT_OPTIONS
    without_heif: bool = False


def read(case: Input, folder: Path) -> Reading:
    """What is made of an input, with pictures decoded and archives unpacked beside it."""
    (folder / "photos").mkdir()
    source = case.build(folder / "photos") or folder / "photos"
    options = SourceOptions(
        case.options.class_level, case.options.follow_links, case.options.allow_outside, folder / "unpacked"
    )
    if case.without_heif:
        with mock.patch.object(images, "_has_heif", return_value=False):
            return read_source(source, options)
    return read_source(source, options)


def told(reading: Reading) -> str:
    """What ``init`` makes of an input, as a cell of the table."""
    data = reading.dataset
    train = data.y_class[~data.is_test].tolist()
    labels = {name: n for c, name in enumerate(data.classes) if (n := train.count(c))}
    words = [", ".join(f"{name} {n}" for name, n in labels.items()) or "no classes"]
    words += [f"{train.count(-1)} unlabelled"] * (-1 in train)
    words += [f"{data.is_test.sum()} for testing"] * bool(data.is_test.any())
    words += [f"set aside: `{q.path}` ({q.reason.partition(' (')[0]})" for q in data.quarantine]
    words += [f"**asks**: {doubt}" for doubt in reading.doubts]
    return "; ".join(words)


def refused(error: AgcdError, folder: Path) -> str:
    """The sentence that refuses an input, as a cell of the table."""
    sentence = str(error).replace(f"{folder}/", "")
    return f"**refuses**: {sentence.partition(' (file could')[0]}"


def line(case: Input, cell: str) -> str:
    """A line of the table."""
    return f"| {case.title} | {cell.replace('|', '&#124;')} |"


# ------------------------------------------------------------------------------------------------ making pictures


def picture(seed: str, mode: str = "RGB") -> Image.Image:
    """A smooth picture that differs from every other one."""
    cells = np.random.default_rng(list(seed.encode())).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return Image.fromarray(cells).resize((SIDE, SIDE), Image.Resampling.BICUBIC).convert(mode)


def content(seed: str, kind: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture(seed, mode).save(buffer, kind, **options)
    return buffer.getvalue()


def put(root: Path, *names: str) -> None:
    """PNG pictures at these paths below ``root``."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(blake2b(name.encode(), digest_size=4).hexdigest()))


def tree(names: str) -> Callable[[Path], None]:
    """PNG pictures at these paths, which stand without their suffix."""
    return lambda root: put(root, *(f"{name}.png" for name in names.split()))


def files(**contents: bytes) -> Callable[[Path], None]:
    """Files in a folder ``cat``, beside one good picture; ``_`` stands for the dot."""

    def build(root: Path) -> None:
        put(root, "cat/good.png", "dog/good.png")
        for name, data in contents.items():
            (root / "cat" / name.replace("_", ".", 1)).write_bytes(data)

    return build


def manifest(text: str | bytes, *names: str, file: str = "list.csv") -> Callable[[Path], Path]:
    """A list beside pictures; the list is what is given."""

    def build(root: Path) -> Path:
        put(root, *names)
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return build


def beside(text: Any, *names: str, file: str) -> Callable[[Path], None]:
    """A list beside pictures; the folder is what is given."""

    def build(root: Path) -> None:
        manifest(text if isinstance(text, str) else json.dumps(text), *names, file=file)(root)

    return build


def metadata_in_splits(root: Path) -> None:
    for split in ("train", "test"):
        beside("file_name,label\n1.png,cat\n", f"{split}/1.png", file=f"{split}/metadata.csv")(root)


def as_json(value: Any, *names: str, file: str = "list.json") -> Callable[[Path], Path]:
    return manifest(json.dumps(value), *names, file=file)


def parquet(columns: dict[str, Any], *names: str, facts: Any = None, file: str = "list.parquet") -> Any:
    def build(root: Path) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        put(root, *names)
        table = pa.table(columns)
        if facts is not None:
            table = table.replace_schema_metadata({"huggingface": json.dumps(facts)})
        pq.write_table(table, root / file)
        return root / file

    return build


def shards(root: Path) -> None:
    """Three Parquet files; where a name has a hyphen for a picture, the row is empty."""
    for name, seeds in {
        "train-00000-of-00002": "a-b",
        "train-00001-of-00002": "cd",
        "test-00000-of-00001": "e",
    }.items():
        rows = [{"bytes": None if seed == "-" else content(seed), "path": None} for seed in seeds]
        columns = {"image": rows, "label": [ord(seed) % 2 for seed in seeds]}
        parquet(columns, facts=HUGGING, file=f"{name}.parquet")(root)


def zipped(members: dict[str, bytes], file: str = "photos.zip") -> Callable[[Path], Path]:
    def build(root: Path) -> Path:
        with zipfile.ZipFile(root / file, "w") as packed:
            for name, data in members.items():
                packed.writestr(name, data)
        return root / file

    return build


def tarred(file: str, mode: str, *links: str) -> Callable[[Path], Path]:
    def build(root: Path) -> Path:
        with tarfile.open(root / file, mode) as packed:  # type: ignore[call-overload]
            for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
                info = tarfile.TarInfo(f"photos/{name}")
                info.size = len(data := content(name))
                packed.addfile(info, io.BytesIO(data))
            for name in links:
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
                packed.addfile(link)
        return root / file

    return build


def bomb(root: Path) -> Path:
    with zipfile.ZipFile(root / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for number in range(5):
            packed.writestr(f"cat/{number}.bmp", bytes(60 * 2**20))
    return root / "bomb.zip"


def linked(*, outside: bool, folder: bool) -> Callable[[Path], None]:
    """Class folders, and a link called ``dog`` or ``cat/2.png``."""

    def build(root: Path) -> None:
        put(root, "cat/1.png", "bird/1.png")
        home = root.parent / "elsewhere" if outside else root / ".hidden"
        put(home, "3.png", "4.png")
        if folder:
            (root / "dog").symlink_to(home)
        else:
            (root / "cat" / "2.png").symlink_to(home / "3.png")

    return build


def looped(root: Path) -> None:
    put(root, "cat/1.png", "dog/1.png")
    (root / "cat" / "back").symlink_to(root)
    (root / "dog" / "cats").symlink_to(root / "cat")


def colours_up_to(limit: int) -> bytes:
    """A PNG of 16 bits that uses values up to ``limit``."""
    return png16((np.arange(SIDE * SIDE * 3) * 97 % limit).reshape(SIDE, SIDE, 3))


def png16(values: NDArray[Any]) -> bytes:
    """Colours (height × width × 3) as a PNG of 16 bits, which Pillow does not write."""
    height, width, _ = values.shape

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    body = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


def grey16(kind: str) -> bytes:
    buffer = io.BytesIO()
    values = (np.arange(SIDE * SIDE) * 7 % 4096).astype(np.uint16).reshape(SIDE, SIDE)
    Image.fromarray(values).save(buffer, kind)
    return buffer.getvalue()


def jpeg12() -> bytes:
    """A JPEG whose header says 12 bits."""
    data = bytearray(content("x", "JPEG"))
    data[data.find(b"\xff\xc0") + 4] = 12
    return bytes(data)


def pages() -> bytes:
    return content("x", "TIFF", save_all=True, append_images=[picture("y")])


HEIC = b"\0\0\0\x18ftypheic\0\0\0\0" + bytes(100)
HUGGING = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
COCO: dict[str, Any] = {
    "images": [{"id": n, "file_name": f"{n}.png"} for n in range(1, 6)],
    "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}],
    "annotations": [
        *({"id": 1, "image_id": 1, "category_id": 7}, {"id": 2, "image_id": 1, "category_id": 7}),
        *({"id": 3, "image_id": 2, "category_id": 9}, {"id": 4, "image_id": 3, "category_id": 7}),
        {"id": 5, "image_id": 3, "category_id": 9},
    ],
}
FIVE = tuple(f"{n}.png" for n in range(1, 6))


def studio(image: str, *choices: str, **more: Any) -> dict[str, Any]:
    results = [{"from_name": "choice", "type": "choices", "value": {"choices": [choice]}} for choice in choices]
    return {"id": 1, "data": {"image": image}, "annotations": [{"result": results, **more}] if choices else []}


def packed_tree(names: str) -> dict[str, bytes]:
    return {f"{name}.png": content(name) for name in names.split()}
