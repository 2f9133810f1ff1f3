"""Tables read as records, and embeddings that belong to them: as people mean it, or refused in one sentence."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from agcd.data.embeddings import read_embeddings, with_embeddings
from agcd.data.reading import SourceOptions, refuse_doubt
from agcd.data.records import MAX_CELLS, read_records
from agcd.data.texts import from_texts
from agcd.errors import DataError
from agcd.io import digest_bytes


def records(path: Path, **options: Any) -> list[dict[str, Any]]:
    found = read_records(path, SourceOptions(**options)).dataset.records
    assert found is not None
    return [json.loads(record) for record in found]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_cells_keep_their_names_and_order_and_classes_are_not_shown(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", "id,Mass,Ring Size,species,split\nA,1.50,6,cat,train\nB,,5,,test\n")
    reading = read_records(table)
    data = reading.dataset
    assert records(table) == [{"cells": [["Mass", "1.50"], ["Ring Size", "6"]]}, {"cells": [["Ring Size", "5"]]}]
    assert (data.where, data.classes, data.y_class.tolist()) == (("A", "B"), ("cat",), [0, -1])
    assert data.is_test.tolist() == [False, True]
    assert "'species' for the classes" in reading.tree[1]


def test_a_second_column_of_classes_is_hidden_and_told(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", "label,category,mass\na,x,1\nb,x,2\na,y,3\n")
    assert records(table)[0] == {"cells": [["mass", "1"]]}
    assert "say different things" in read_records(table).doubts[0]
    with pytest.raises(DataError, match="can be read in several ways"):
        read_records(table, choose=refuse_doubt)
    assert records(table, label_column="category")[0]["cells"] == [["label", "a"], ["mass", "1"]]


def test_pictures_links_and_texts_are_found_by_name_or_by_option(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30), "red").save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    table = written(
        tmp_path / "t.csv",
        "text,url,image,note\nHello,https://example.org/1,a.png,n\nBye,javascript:alert(1),../t.csv,n\n,,gone.png,n\n",
    )
    one, two, three = records(table)
    assert one == {
        "text": "Hello",
        "link": "https://example.org/1",
        "picture": "a.png",
        "picture_key": digest_bytes(content),
        "cells": [["note", "n"]],
    }
    assert two["cells"] == [["note", "n"], ["link", "javascript:alert(1)"], ["picture", "../t.csv"]]
    assert three == {"cells": [["note", "n"], ["picture", "gone.png"]]}
    assert "2 pictures cannot be shown, the first is ../t.csv: lies outside" in read_records(table).tree[-1]
    assert records(table, column="note")[0]["text"] == "n"
    assert "link" not in records(table, link_column="note")[0]


def test_parquet_shows_dates_and_truth_and_leaves_vectors_out(tmp_path: Path) -> None:
    columns = {
        "id": ["A"],
        "when": [datetime.date(2024, 2, 29)],
        "alive": [True],
        "x": [[1.0, 2.0]],
        "n": [3.0],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert records(tmp_path / "t.parquet") == [{"cells": [["when", "2024-02-29"], ["alive", "True"], ["n", "3"]]}]


def test_what_is_too_much_is_cut_and_what_is_empty_set_aside(tmp_path: Path) -> None:
    many = {f"c{n:03d}": "x" * 5000 for n in range(60)}
    path = written(tmp_path / "t.jsonl", "".join(json.dumps(one) + "\n" for one in (many, dict.fromkeys(many, ""))))
    (one,) = records(path)
    assert len(one["cells"]) == MAX_CELLS
    assert {len(value) for _, value in one["cells"]} == {2000}
    (aside,) = read_records(path).dataset.quarantine
    assert (aside.path, aside.reason) == ("t.jsonl:2", "empty: there is nothing to show")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.xlsx", "x", r"cannot be read as records: a table \(\.csv"),
        ("t.csv", "", "names no columns; their names are expected in the first line"),
        ("t.csv", "label\na\n", "holds no usable record; of 1 unusable ones the first is"),
    ],
)
def test_what_is_no_table_of_records_is_one_sentence(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_records(written(tmp_path / name, content))


# --------------------------------------------------------------------------------------------------- embeddings

X = np.arange(12, dtype=np.float32).reshape(4, 3)
NAMES = ("row 0", "row 1", "row 2", "row 3")
TEXTS = from_texts(["a", "b", "c", "d"])


def as_npy(path: Path) -> Path:
    np.save(path.with_suffix(".npy"), X)
    return path.with_suffix(".npy")


def as_npz(path: Path) -> Path:
    np.savez(path.with_suffix(".npz"), embeddings=X[::-1], ids=np.array(NAMES[::-1]))
    return path.with_suffix(".npz")


def as_lists(path: Path) -> Path:
    table = pa.table({"id": ["more", *NAMES[::-1]], "vector": [[9.0, 9.0, 9.0], *X[::-1].tolist()]})
    pq.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def as_columns(path: Path) -> Path:
    pq.write_table(pa.table({f"f{n}": X[:, n] for n in range(3)}), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("make", [as_npy, as_npz, as_lists, as_columns])
def test_embeddings_reach_their_rows_by_id_or_in_order(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    x = with_embeddings(TEXTS, make(tmp_path / "x"), NAMES).x
    assert x is not None
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, X)


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


FAULTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "too few": (lambda f: saved(f / "x.npz", x=X[:3]), "has 3 vectors for 4 items"),
    "an id that lacks": (lambda f: saved(f / "x.npz", x=X, ids=["a", "b", "c", "d"]), "no vector of 'row 0', nor of 3"),
    "an id twice": (lambda f: saved(f / "x.npz", x=X, ids=["a", "b", "a", "d"]), "two vectors of 'a'"),
    "ids of another number": (lambda f: saved(f / "x.npz", x=X, ids=["a"]), "has 1 ids for 4 vectors"),
    "no array of ours": (lambda f: saved(f / "x.npz", y=X), "has no array 'x'; its arrays are 'y'"),
    "one number each": (lambda f: saved(f / "x.npz", x=X[:, 0]), r"of shape \(4,\); one vector of numbers per item"),
    "words": (lambda f: saved(f / "x.npz", x=X.astype(str)), "one vector of numbers per item"),
    "NaN": (lambda f: saved(f / "x.npz", x=np.where(X > 10, np.nan, X)), "vector 3 holds numbers that are not finite"),
    "objects": (lambda f: saved(f / "x.npz", x=np.array([{}, 1], object)), "not a readable archive of arrays"),
    "no array at all": (lambda f: written(f / "x.npy", "x"), "not a readable array"),
    "nothing there": (lambda f: f / "x.npy", "There are no embeddings at"),
    "another file": (lambda f: written(f / "x.csv", "1,2"), "cannot be read as embeddings: an .npy, .npz or .parquet"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_embeddings_that_do_not_fit_are_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    make, sentence = FAULTS[name]
    with pytest.raises(DataError, match=sentence) as caught:
        with_embeddings(TEXTS, make(tmp_path), NAMES)
    assert "\n" not in str(caught.value)


def test_ids_of_any_kind_are_compared_as_text(tmp_path: Path) -> None:
    assert read_embeddings(saved(tmp_path / "x.npz", x=X, ids=np.arange(4)))[1] == ["0", "1", "2", "3"]
