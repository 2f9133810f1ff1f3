"""What ``init`` says about the images, and tables that survive spreadsheets."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agcd.data import health
from agcd.data.health import health_report
from agcd.data.sources import read_source
from agcd.data.tables import escaped, plain, read_table, table_text, write_table
from agcd.errors import DataError
from agcd.types import Dataset


def photograph(path: Path, seed: int, size: int = 64) -> None:
    """A smooth random picture: like a photograph, it keeps its look when it is stored again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = np.random.default_rng(seed).integers(0, 255, (8, 9), dtype=np.uint8)
    Image.fromarray(cells).resize((size, size), Image.Resampling.BICUBIC).convert("RGB").save(path)


def looked_at(folder: Path) -> Dataset:
    return read_source(folder).dataset


def test_the_report_counts_and_names_what_is_wrong(tmp_path: Path) -> None:
    for seed in range(6):
        photograph(tmp_path / "train" / ("cat" if seed < 3 else "unlabelled") / f"{seed}.png", seed)
    photograph(tmp_path / "train" / "dog" / "tiny.png", 20, size=16)
    shutil.copy(tmp_path / "train" / "cat" / "0.png", tmp_path / "train" / "dog" / "copy.png")
    (tmp_path / "test" / "cat").mkdir(parents=True)
    shutil.copy(tmp_path / "train" / "cat" / "1.png", tmp_path / "test" / "cat" / "leak.png")
    Image.open(tmp_path / "train" / "cat" / "2.png").save(tmp_path / "train" / "cat" / "2.jpg", quality=85)
    (tmp_path / "train" / "cat" / "broken.jpg").write_bytes(b"")
    report = health_report(looked_at(tmp_path))
    assert report[0] == "10 images: 6 labelled, 3 unlabelled, 1 test"
    assert report[1:3] == ["  cat: 4 labelled", "  dog: 2 labelled"]
    assert report[3:5] == ["1 file set aside", "  train/cat/broken.jpg: empty file"]
    assert "2 exact duplicates of other images" in report
    assert any(line.startswith("1 training image also for testing") for line in report)
    assert any("the same image is labelled 'cat' and 'dog'" in line for line in report)
    assert any(line.startswith("1 tiny image,") for line in report)
    near = report.index("2 images nearly the same as another one")
    assert report[near + 1] == f"  {tmp_path}/train/cat/2.jpg and {tmp_path}/train/cat/2.png"
    assert health_report(looked_at(tmp_path), tmp_path)[near + 1] == "  train/cat/2.jpg and train/cat/2.png"


def test_pages_that_are_not_read_are_told(tmp_path: Path) -> None:
    pages = [Image.effect_noise((40, 40), 20 + i) for i in range(3)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    pages[0].save(tmp_path / "b.tif")
    assert "1 image of several pages: the first page is read" in health_report(looked_at(tmp_path))


def test_a_healthy_folder_needs_few_words(tmp_path: Path) -> None:
    for seed in range(4):
        photograph(tmp_path / f"class {seed % 2}" / f"{seed}.png", seed)
    assert len(health_report(looked_at(tmp_path))) == 3


def test_many_images_are_not_searched_for_near_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MAX_HASHED", 3)
    monkeypatch.setattr(health, "HUGE_PIXELS", 4000)
    for seed in range(4):
        photograph(tmp_path / "a" / f"{seed}.png", seed, size=63 if seed else 64)
    report = health_report(looked_at(tmp_path))
    assert "near duplicates were not looked for: more than 3 images" in report
    assert any(line.startswith("1 huge image,") for line in report)


@pytest.mark.parametrize("cell", ["'=already", "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\tx", "\rx"])
def test_cells_that_would_run_are_escaped_and_read_back(cell: str, tmp_path: Path) -> None:
    assert escaped(cell) == f"'{cell}"
    assert plain(escaped(cell)) == cell
    write_table(tmp_path / "t.csv", {"label": [cell, "plain", "'quoted'"], "n": [-1, 2.5, None]})
    lines = [cells for _, cells in read_table(tmp_path / "t.csv", ("label",))]
    assert [cells["label"] for cells in lines] == [cell, "plain", "'quoted'"]
    assert [cells["n"] for cells in lines] == ["-1", "2.5", ""]


def test_tables_of_spreadsheets_are_read_with_patience(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffRow; Label \n1;"Rotmilan\nMilvus"\n2\n'.encode())
    assert [cells for _, cells in read_table(path, ("row", "label"))] == [
        {"row": "1", "label": "Rotmilan\nMilvus"},
        {"row": "2", "label": ""},
    ]
    path.write_bytes("row,label\n1,Grünspecht\n".encode("cp1252"))
    assert next(read_table(path, ("label",)))[1]["label"] == "Grünspecht"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("row,lable\n1,a\n", "no column 'label'; its columns are 'row' and 'lable'"),
        ("label,label\na,b\n", "2 columns called 'label'"),
        ("row,label\n1,a,b\n", "line 2: 3 cells for 2 columns"),
        ('row,label\n1,"a\n', "not valid CSV"),
        ("", "no column 'label'"),
    ],
)
def test_tables_that_make_no_sense_are_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=sentence):
        list(read_table(tmp_path / "t.csv", ("label",)))


def test_a_missing_table_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        list(read_table(tmp_path / "gone.csv", ()))
    assert table_text({"a": [], "b": []}) == "a,b\n"
