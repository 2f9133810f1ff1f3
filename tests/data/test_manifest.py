"""Manifests become rows in their own order, or one sentence that names the file and the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from agcd.data.sources import SourceOptions, load_dataset, read_source
from agcd.errors import DataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with images a.png, b.png, c.png and "d, e.png"."""
    root = tmp_path / "root"
    root.mkdir()
    for grey, name in enumerate(["a.png", "b.png", "c.png", "d, e.png", "café.png"]):
        Image.new("L", (3, 3), grey * 40).save(root / name)
    return root


def write(root: Path, text: str | bytes, name: str = "m.csv") -> Path:
    path = root / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_rows_keep_the_order_of_the_manifest_and_empty_cells_mean_unlabelled_train(root: Path) -> None:
    path = write(root, 'path,label,split\nc.png,dog,train\na.png,,\nb.png,cat,test\n"d, e.png", -1 ,Train\n\n')
    dataset = load_dataset(path)
    assert [p.name for p in dataset.paths or ()] == ["c.png", "a.png", "b.png", "d, e.png"]
    assert (dataset.classes, dataset.name) == (("cat", "dog"), "m")
    assert dataset.y_class.tolist() == [1, -1, 0, -1]
    assert dataset.is_test.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "content",
    [
        "path,label\ncafé.png,é\n".encode("utf-8-sig"),
        "path,label\ncafé.png,é\n".encode("cp1252"),
        "path;label\r\ncafé.png;é\r\n".encode(),
        "Path\tLABEL\ncafé.png\té\n".encode(),
        "other,label,path\nx,e\u0301,café.png\n".encode(),
    ],
)
def test_byte_order_mark_code_page_delimiter_and_column_order_do_not_matter(root: Path, content: bytes) -> None:
    dataset = load_dataset(write(root, content))
    assert (dataset.n_rows, dataset.classes) == (1, ("é",))


def test_quoted_newlines_stay_in_the_label(root: Path) -> None:
    assert load_dataset(write(root, 'path,label\na.png,"two\nlines"\n')).classes == ("two\nlines",)


def test_only_the_path_column_is_needed(root: Path) -> None:
    assert load_dataset(write(root, "path\na.png\nb.png\n")).y_class.tolist() == [-1, -1]


def test_missing_files_are_set_aside_and_where_all_are_missing_the_first_is_named(root: Path) -> None:
    dataset = load_dataset(write(root, "path\na.png\nx.png\ny.png\n"))
    assert [(q.path, q.reason) for q in dataset.quarantine] == [
        ("x.png", "there is no such file"),
        ("y.png", "there is no such file"),
    ]
    with pytest.raises(DataError, match=r"m\.csv lists 2 paths that do not exist, the first is 'x\.png'; paths start"):
        load_dataset(write(root, "path\nx.png\ny.png\n"))


def test_addresses_are_not_fetched(root: Path) -> None:
    with pytest.raises(DataError, match="do not exist, the first is 'http://"):
        load_dataset(write(root, "path\nhttp://169.254.169.254/latest.jpg\n"))


@pytest.mark.parametrize("template", ["../root-b/x.png", "{outside}", "sub/../../root-b/x.png"])
def test_paths_that_leave_the_folder_are_refused_unless_allowed(root: Path, template: str) -> None:
    outside = root.parent / "root-b" / "x.png"  # shares its prefix with the root, not its components
    outside.parent.mkdir()
    Image.new("L", (3, 3)).save(outside)
    path = write(root, f"path\n{template.format(outside=outside)}\n")
    with pytest.raises(DataError, match=r"line 2: .* lies outside the manifest's folder"):
        load_dataset(path)
    assert read_source(path, SourceOptions(allow_outside=True)).dataset.n_rows == 1


def test_absolute_paths_inside_the_folder_are_fine(root: Path) -> None:
    assert load_dataset(write(root, f"path\n{root / 'a.png'}\n")).n_rows == 1


def test_a_link_that_leads_outside_is_quarantined(root: Path) -> None:
    outside = root.parent / "secret.png"
    Image.new("L", (3, 3)).save(outside)
    (root / "link.png").symlink_to(outside)
    dataset = load_dataset(write(root, "path\na.png\nlink.png\n"))
    assert dataset.n_rows == 1
    assert [(q.path, q.reason) for q in dataset.quarantine] == [
        ("link.png", "link that leads outside the manifest's folder; --allow-outside follows it")
    ]


def test_unusable_images_are_quarantined(root: Path) -> None:
    (root / "bad.png").write_text("no")
    dataset = load_dataset(write(root, "path,label\nbad.png,x\na.png,y\n"))
    assert (dataset.n_rows, dataset.classes, dataset.quarantine[0].path) == (1, ("y",), "bad.png")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\na.png,x\n./a.png,x\n", r"line 3: './a\.png' is listed twice; once is expected"),
        ("path,label\na.png,x\na.png,y\n", r"'a\.png' is listed twice, as 'x' for train and as 'y' for train"),
        ("path,split\na.png,train\na.png,test\n", "twice, as None for train and as None for test"),
    ],
)
def test_a_file_listed_twice_is_refused_by_name(root: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(write(root, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paths,label\na.png,x\n", r"no column 'path' \(or .*its columns are 'paths' and 'label'\."),
        ("", "no column 'path'"),
        (",".join(f"c{i}" for i in range(100_000)) + "\n", "no column 'path'"),
        ("path,path\na.png,a.png\n", "2 columns called 'path'"),
        ("path,split\na.png,later\n", "line 2: split is 'later'; 'train', 'val', 'test' or nothing"),
        ("path,label\na.png,x,y\n", "line 2: 3 cells for 2 columns"),
        ("path,label\n,x\n", "line 2: the path is ''"),
        ("path\na\0.png\n", r"line 2: (the path is 'a\\x00.png'|not valid CSV)"),
        ('path,label\na.png,"x\n', "not valid CSV"),
        ("path\n" + "x" * 200_000 + "\n", "not valid CSV"),
        ("path\n", "lists no usable image"),
    ],
)
def test_broken_manifests_are_one_short_sentence(root: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(write(root, text))
    assert len(str(caught.value)) < 1000


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no manifest at .*gone\.csv"):
        load_dataset(tmp_path / "gone.csv")


def parquet(root: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), root / "m.parquet")
    return root / "m.parquet"


@pytest.mark.parametrize(
    "labels",
    [
        ["9", None, "10"],
        [9, -1, 10],
        pa.array([9.0, float("nan"), 10.0]),
        pa.array(["9", None, "10"]).dictionary_encode(),
        pa.array(["9", "", "10"], pa.large_string()),
    ],
)
def test_parquet_labels_are_text_or_numbers_and_may_be_missing(root: Path, labels: Any) -> None:
    path = parquet(root, path=["a.png", "b.png", "c.png"], label=labels, extra=[[1], [2], [3]])
    dataset = load_dataset(path)
    assert (dataset.classes, dataset.y_class.tolist()) == (("10", "9"), [1, -1, 0])


def test_nested_parquet_columns_and_broken_files_are_refused(root: Path) -> None:
    with pytest.raises(DataError, match=r"column 'label' is of type list<.*>; text or numbers are expected"):
        load_dataset(parquet(root, path=["a.png"], label=[["x"]]))
    with pytest.raises(DataError, match="no column 'path'"):
        load_dataset(parquet(root, paths=["a.png"]))
    with pytest.raises(DataError, match="not a readable Parquet file"):
        load_dataset(write(root, "hello", "m.parquet"))
