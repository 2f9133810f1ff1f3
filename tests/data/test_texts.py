"""Texts as people have them are read as they mean it, or refused in one sentence: none is silently wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agcd.data import texts as texts_module
from agcd.data.columns import standard_names
from agcd.data.reading import DEFAULT_OPTIONS, Choice, SourceOptions, refuse_doubt
from agcd.data.tables import write_table
from agcd.data.text_health import script_of, text_health
from agcd.data.text_items import BINARY, EMPTY, MAX_CHARS, clean_text, reason_against
from agcd.data.texts import from_texts, read_texts
from agcd.errors import DataError
from agcd.io import digest_bytes
from agcd.types import Dataset

TWO = [("Hello there", "greet"), ("Pay the bill", "bank")]


def records(*pairs: tuple[str, str], text: str = "text", label: str = "label") -> list[dict[str, str]]:
    return [{text: one, label: other} for one, other in pairs]


def lines(values: Sequence[object]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


@dataclass(frozen=True)
class Case:
    """A file, or files by their paths, and what must be made of it."""

    name: str
    content: str | bytes | dict[str, str | bytes]
    rows: list[tuple[str, str | None]]
    """Every text that is used with its class."""
    test: list[bool] | None = None
    where: list[str] | None = None
    aside: dict[str, str] = field(default_factory=dict)
    tree: str = ""
    """A piece of what it says it has understood."""
    options: SourceOptions = DEFAULT_OPTIONS


CASES = {
    "commas": Case("t.csv", "text,label\nHello there,greet\nPay the bill,bank\n", [*TWO], where=["t.csv:2", "t.csv:3"]),
    "semicolons": Case("t.csv", "Label;Text\r\ngreet;Hello there\r\nbank;Pay the bill\r\n", [*TWO]),
    "tabs": Case(
        "t.tsv", "utterance\tintent\nHello there\tgreet\nPay the bill\tbank\n", [*TWO], tree="'utterance' for"
    ),
    "a byte order mark": Case("t.csv", "\ufefftext,label\nHello there,greet\nPay the bill,bank\n", [*TWO]),
    "UTF-16 of spreadsheets": Case("t.csv", "text\tlabel\nÜber\tgreet\n".encode("utf-16"), [("Über", "greet")]),
    "Windows-1252": Case("t.csv", "text,label\n“Grüße”,é\n".encode("cp1252"), [("“Grüße”", "é")]),
    "line breaks in cells": Case("t.csv", 'text,label\n"One\r\ntwo",a\n', [("One\ntwo", "a")], where=["t.csv:3"]),
    "missing labels": Case(
        "t.csv", "text,label\na,\nb,-1\nc, x \nd\n", [("a", None), ("b", None), ("c", "x"), ("d", None)]
    ),
    "splits": Case(
        "t.csv", "text,split\na,train\nb,val\nc,test\nd,\n", [(c, None) for c in "abcd"], [False, False, True, False]
    ),
    "ids": Case("t.csv", "id,text\nA-1,a\nA-2,b\n", [("a", None), ("b", None)], where=["A-1", "A-2"], tree="'id' for"),
    "ids that repeat": Case("t.csv", "id,text\n1,a\n1,b\n", [("a", None), ("b", None)], where=["t.csv:2", "t.csv:3"]),
    "ids that are missing": Case("t.csv", "uid,text\n,a\n", [("a", None)], where=["t.csv:2"]),
    "several columns of texts": Case(
        "t.csv", "title,body,tag\nT,B,x\n", [("B", "x")], tree="texts may be in 'title' as well: --column takes another"
    ),
    "another column": Case("t.csv", "Title,Text\nT,B\n", [("T", None)], options=SourceOptions(column="TITLE")),
    "another column of classes": Case(
        "t.csv", "text,label,Product Line\na,1,x\n", [("a", "x")], options=SourceOptions(label_column="product line")
    ),
    "a column of another name": Case("t.csv", "class,sms\nham,Hi\n", [("Hi", "ham")], tree="'sms' is the only column"),
    "one column": Case("t.csv", "Label\nHi\n", [("Hi", None)], tree="'Label' is the only column"),
    "the rows of pandas": Case("t.csv", ",sms,label\n0,Hi,ham\n", [("Hi", "ham")], tree="'sms' is the only column"),
    "names beside numbers": Case("t.jsonl", lines([{"text": "a", "label": 0, "label_text": "x"}]), [("a", "x")]),
    "formulas": Case(
        "t.csv", "text\n'=1+1\n'-5 degrees\n'tis\n", [("=1+1", None), ("-5 degrees", None), ("'tis", None)]
    ),
    "quotes that do not pair": Case(
        "t.tsv", 'text\tlabel\n"Oh" he said\tx\n"\ty\n', [('"Oh" he said', "x"), ('"', "y")], tree="quotes do not pair"
    ),
    "what is empty": Case(
        "t.csv", "text,label\n  ,x\na,y\n\u200b,x\n", [("a", "y")], aside={"t.csv:2": EMPTY, "t.csv:4": EMPTY}
    ),
    "what is binary": Case(
        "t.csv", "text\na\0b\n\x01\x02\x03x\nok\n", [("ok", None)], aside={"t.csv:2": BINARY, "t.csv:3": BINARY}
    ),
    "control characters": Case("t.csv", "text\na\x1b[1mb\u202e c\n", [("a [1mb  c", None)]),
    "composed letters": Case("t.csv", "text,label\ne\u0301,e\u0301\n", [("é", "é")]),
    "a line of a megabyte": Case(
        "t.csv",
        f"text\n{'lorem ' * 170_000}\n",
        [(("lorem " * 3334)[: MAX_CHARS - 3].strip(), None)],
        tree="1 text was short",
    ),
    "JSON lines": Case("t.jsonl", lines(records(*TWO)), [*TWO], where=["t.jsonl:1", "t.jsonl:2"]),
    "JSON lines with U+2028": Case("t.ndjson", '{"text": "a\u2028b"}\r\n\r\n', [("a\nb", None)]),
    "JSON": Case("t.json", json.dumps(records(*TWO, text="query", label="topic")), [*TWO]),
    "JSON of texts": Case("t.json", '["a", "b"]', [("a", None), ("b", None)], where=["t.json:1", "t.json:2"]),
    "JSON with numbers": Case(
        "t.json", '[{"text": 5, "class": 2.0}, {"text": null}]', [("5", "2")], aside={"t.json:2": EMPTY}
    ),
    "halves of characters": Case(
        "t.jsonl", '{"text": "a\\ud83d b \\\\ud83d \\ud83d\\ude42"}\n', [("a\ufffd b \\ud83d 🙂", None)]
    ),
    "emoji and right to left": Case(
        "t.txt", "👩‍👩‍👧 ok\nمرحبا بالعالم\n", [("👩‍👩‍👧 ok", None), ("مرحبا بالعالم", None)]
    ),
    "one text a line": Case(
        "t.txt",
        "one\r\n\r\ntwo, or \x0bthree\n",
        [("one", None), ("two, or \nthree", None)],
        where=["t.txt:1", "t.txt:3"],
        tree="1 empty line passed over",
    ),
    "class folders": Case(
        "d",
        {"sport/1.txt": "Goal", "sport/2.TXT": "Match", "arts/1.txt": "Opera\n", "arts/1.pdf": ""},
        [("Opera", "arts"), ("Goal", "sport"), ("Match", "sport")],
        where=["arts/1.txt", "sport/1.txt", "sport/2.TXT"],
        tree="1 file without .txt passed over",
    ),
    "split folders": Case(
        "d",
        {"train/a/1.txt": "1", "train/b/1.txt": "2", "test/a/1.txt": "3", "train/unlabelled/1.txt": "4"},
        [("3", "a"), ("1", "a"), ("2", "b"), ("4", None)],
        [True, False, False, False],
        tree="a/  1 text: a class",
    ),
    "flat folder": Case("d", {"1.txt": "a", "2.txt": "b"}, [("a", None), ("b", None)], tree="no folder names a class"),
    "a level of folders": Case(
        "d",
        {"news/sport/1.txt": "a", "blog/arts/1.txt": "b"},
        [("b", "blog"), ("a", "news")],
        options=SourceOptions(class_level=1),
    ),
    "encodings of files": Case(
        "d",
        {"a.txt": b"\xff\xfea\0", "b.txt": "é".encode("cp1252"), "c.txt": b"\x81", "d.txt": b"", "e.txt": b"\x89P\0"},
        [("a", None), ("é", None)],
        aside={"c.txt": "neither UTF-8", "d.txt": EMPTY, "e.txt": BINARY},
    ),
    "equal texts": Case("t.csv", "text,label\na,x\na,y\na ,\n", [("a", "x"), ("a", "y"), ("a", None)]),
}


def write(folder: Path, name: str, content: str | bytes | dict[str, str | bytes]) -> Path:
    for below, inner in content.items() if isinstance(content, dict) else [("", content)]:
        path = folder / name / below if below else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(inner if isinstance(inner, bytes) else inner.encode())
    return folder / name


def labelled(dataset: Dataset) -> list[tuple[str, str | None]]:
    labels = [dataset.classes[c] if c >= 0 else None for c in dataset.y_class.tolist()]
    return list(zip(dataset.texts or (), labels, strict=True))


@pytest.mark.parametrize("title", CASES)
def test_texts_are_understood_as_they_are_meant(title: str, tmp_path: Path) -> None:
    case = CASES[title]
    reading = read_texts(write(tmp_path, case.name, case.content), case.options)
    data = reading.dataset
    assert labelled(data) == case.rows
    assert data.is_test.tolist() == (case.test or [False] * data.n_rows)
    assert data.where is not None
    assert list(data.where) == (case.where or list(data.where))
    assert len(set(data.where)) == data.n_rows
    assert data.keys == tuple(digest_bytes(text.encode()) for text, _ in case.rows)
    assert list(data.classes) == sorted({label for _, label in case.rows if label is not None})
    assert {q.path: q.reason[: len(case.aside.get(q.path, ""))] for q in data.quarantine} == case.aside
    assert any(case.tree in line for line in reading.tree), reading.tree
    assert not reading.doubts
    assert text_health(data)


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("t.docx", "x", SourceOptions(), r"cannot be read as texts: a table \(\.csv, .* or a folder of \.txt files is"),
        (
            "t.csv",
            "a,b\n1,2\n",
            SourceOptions(),
            r"no column of texts \(text, .*its columns are 'a' and 'b': .* --column",
        ),
        ("t.csv", "label,split\nx,train\n", SourceOptions(), "no column of texts"),
        ("t.csv", "", SourceOptions(), "names no columns; one called 'text' is expected"),
        ("t.csv", "text\n\n", SourceOptions(), r"t\.csv holds no usable text\.$"),
        ("t.csv", "text,label\n ,x\n", SourceOptions(), r"of 1 unusable ones the first is t\.csv:2: empty"),
        ("t.csv", "text,text\na,b\n", SourceOptions(), "2 columns called 'text'"),
        ("t.csv", "text,x\na,b\n", SourceOptions(column="body"), "no column 'body'; its columns .* with --column"),
        (
            "t.csv",
            "text,x\na,b\n",
            SourceOptions(label_column="y"),
            "no column 'y'; its columns .* with --label-column",
        ),
        (
            "t.csv",
            "text,x\na,b\n",
            SourceOptions(column="x", label_column="X"),
            "--column and --label-column both name 'X'",
        ),
        (
            "t.csv",
            "text,split\na,later\n",
            SourceOptions(),
            "line 2: split is 'later'; 'train', 'val', 'test' or nothing",
        ),
        ("t.csv", 'text\n"a\n', SourceOptions(), "line 2: not valid CSV"),
        ("t.tsv", 'text\n"a" b\tc\n', SourceOptions(), "line 2: not valid CSV"),
        ("t.json", '{"text": "a"}', SourceOptions(), "is no list of texts: a list of records"),
        ("t.json", "[]", SourceOptions(), "names no columns"),
        ("t.jsonl", '{"text": ["a"]}\n', SourceOptions(), r"line 1: text is .* one text is expected"),
        ("t.jsonl", "5\n", SourceOptions(), "line 1: '5' is no record"),
        ("t.jsonl", '{"text": "a"\n', SourceOptions(), "line 1 is not valid JSON"),
        ("t.json", "[" * 100_000, SourceOptions(), "nested too deeply to be a list of texts"),
        ("t.parquet", "x", SourceOptions(), "not a readable Parquet file"),
        ("t.txt", b"a\x81", SourceOptions(), "neither UTF-8, UTF-16 with a byte order mark nor Windows-1252; save it"),
        ("t.txt", "\n\n", SourceOptions(), "holds no usable text"),
        ("d", {"a.csv": "text\nx\n"}, SourceOptions(), r"holds no \.txt file but 'a\.csv': give that file"),
        ("d", {"a.docx": "x"}, SourceOptions(), r"holds no usable text: \.txt files are expected"),
        (
            "d",
            {"a/1.txt": "x"},
            SourceOptions(class_level=3),
            "--class-level is 3, but texts lie at most 1 folder deep",
        ),
        ("d", {"Cat/1.txt": "x", "cat/1.txt": "y"}, SourceOptions(), "Two class folders"),
    ],
)
def test_what_makes_no_sense_is_one_short_sentence(
    tmp_path: Path, name: str, content: str | bytes | dict[str, str | bytes], options: SourceOptions, sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        read_texts(write(tmp_path, name, content), options)
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


def test_what_is_missing_or_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"nothing to read at .*gone\.csv: a table"):
        read_texts(tmp_path / "gone.csv")
    monkeypatch.setattr(texts_module, "MAX_BYTES", 10)
    path = write(tmp_path, "t.csv", "text\nabcdefg\n")
    with pytest.raises(DataError, match="has 13 bytes, more than the 10 that are read: split the file"):
        read_texts(path)


def test_parquet_tells_names_of_classes_and_keeps_odd_ids_out(tmp_path: Path) -> None:
    facts = {"huggingface": json.dumps({"info": {"features": {"label": {"names": ["neg", "pos"]}}}})}
    table = pa.table({"id": [[1], [2], [3]], "text": ["a", "b", None], "label": [1, -1, 0]})
    pq.write_table(table.replace_schema_metadata(facts), tmp_path / "t.parquet")
    reading = read_texts(tmp_path / "t.parquet")
    assert labelled(reading.dataset) == [("a", "pos"), ("b", None)]
    assert reading.dataset.where == ("t.parquet:1", "t.parquet:2")
    assert [(q.path, q.reason) for q in reading.dataset.quarantine] == [("t.parquet:3", EMPTY)]
    pq.write_table(pa.table({"id": [7, 8], "text": pa.array(["a", "b"]).dictionary_encode()}), tmp_path / "t.parquet")
    assert read_texts(tmp_path / "t.parquet").dataset.where == ("7", "8")
    pq.write_table(pa.table({"text": [b"a"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'text' is of type binary; text or numbers are expected"):
        read_texts(tmp_path / "t.parquet")


def test_what_is_not_sure_is_asked(tmp_path: Path) -> None:
    table = write(tmp_path, "t.csv", "text,category,topic\na,1,x\nb,1,y\n")
    reading = read_texts(table)
    assert reading.dataset.classes == ("1",)
    assert reading.doubts[0].endswith("'category' names the classes; --label-column takes the other one.")
    with pytest.raises(DataError, match=r"several ways.* add --yes to go on"):
        read_texts(table, choose=refuse_doubt)
    assert not read_texts(table, SourceOptions(label_column="topic"), refuse_doubt).doubts
    folder = write(tmp_path, "d", {"news/sport/1.txt": "a", "blog/arts/1.txt": "b"})
    reading = read_texts(folder)
    assert (reading.dataset.classes, reading.class_level) == (("arts", "sport"), 2)
    assert "hold no texts, only folders" in reading.doubts[0]
    other = read_texts(folder, choose=lambda source, doubts, choices: Choice("", 1))
    assert (other.dataset.classes, other.class_level) == (("blog", "news"), 1)


def test_lists_of_images_do_not_know_the_columns_of_texts() -> None:
    columns = ["id", "text", "title", "topic", "file", "class"]
    assert standard_names("x", columns) == ["id", "text", "title", "topic", "path", "label"]


def test_a_long_text_ends_with_a_word_and_one_without_spaces_anywhere() -> None:
    assert clean_text("x" * MAX_CHARS) == ("x" * MAX_CHARS, False)
    assert clean_text("x" * MAX_CHARS + " y") == ("x" * MAX_CHARS, True)
    assert clean_text("字" * 100_000) == ("字" * MAX_CHARS, True)
    assert clean_text("x" * (MAX_CHARS - 2) + " yes") == ("x" * (MAX_CHARS - 2), True)
    assert clean_text(" " * 100_000 + "x") == ("x", False)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
@example(["=1+1", "'=x", "\r", "a\rb", 'say "x"', "-1", "a\x85b\u2028", "\ufeffx", "\x1f", "e\u0301\u0323"])
def test_texts_written_to_a_table_come_back_clean(texts: list[str]) -> None:
    expected = [cleaned for text in texts if reason_against(text, cleaned := clean_text(text)[0]) is None]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        write_table(path, {"text": [*texts, "end"], "label": ["x"] * (len(texts) + 1)})
        dataset = read_texts(path).dataset
    assert list(dataset.texts or ()) == [*expected, "end"]
    assert len(dataset.quarantine) == len(texts) - len(expected)


@settings(deadline=None)
@given(st.text(st.characters(), max_size=60))
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    cleaned, _ = clean_text(text)
    assert clean_text(cleaned) == (cleaned, False)
    assert cleaned.encode().decode() == cleaned
    assert set(cleaned) & set("\r\0\x1b\u202e\ud800") == set()


# ---------------------------------------------------------------------------------------------------- in memory


def test_texts_in_memory_keep_their_rows(caplog: pytest.LogCaptureFixture) -> None:
    data = from_texts(["a", " b ", "a"], ["x", None, "y"], texts_test=["c" * 30_000], y_test=["y"], name="mine")
    assert labelled(data)[:3] == [("a", "x"), ("b", None), ("a", "y")]
    assert (data.is_test.tolist(), data.where) == ([False] * 3 + [True], ("row 0", "row 1", "row 2", "row 3"))
    assert data.keys[0] == data.keys[2] != data.keys[1]
    assert "texts_test: 1 text was shortened to 20,000 characters" in caplog.text
    numbered = from_texts(["a", "b"], [1, -1], classes=["x", "y"])
    assert (numbered.classes, numbered.y_class.tolist()) == (("x", "y"), [1, -1])


@pytest.mark.parametrize(
    ("texts", "y", "sentence"),
    [
        ("hello", None, "texts is one text, 'hello'; a list of texts is expected"),
        ([], None, "texts is empty"),
        (["a", None], None, "texts holds 'None' in row 1; a text is expected"),
        (["a", " "], None, "texts cannot be used, row 1 is empty"),
        (["a", "b"], ["x"], r"y is of shape \(1,\), but there are 2 rows"),
    ],
)
def test_texts_in_memory_that_cannot_be_rows_are_refused(texts: list[str], y: list[str] | None, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        from_texts(texts, y)
    with pytest.raises(DataError, match="y_test is given without texts_test"):
        from_texts(["a"], y_test=["x"])


# ------------------------------------------------------------------------------------------------------- health


def test_the_report_counts_and_names_what_is_wrong(tmp_path: Path) -> None:
    rows = ["Pay now!,bank,train", "Pay now!,shop,train", "pay NOW,bank,train", "Привет мир,,train", ",,train"]
    rows += ["Hello,greet,train", "Hello,greet,test", "🙂🙂,,train", "!!!,,train", "कि,,train", "का,,train"]
    report = text_health(read_texts(write(tmp_path, "t.csv", "\n".join(["text,label,split", *rows]))).dataset)
    assert report == [
        "10 texts: 4 labelled, 5 unlabelled, 1 test",
        "  bank: 2 labelled",
        "  greet: 1 labelled",
        "  shop: 1 labelled",
        "1 text set aside",
        "  t.csv:6: empty: there is nothing to read",
        "2 exact duplicates of other texts",
        "1 training text also for testing: accuracy on them is flattered",
        "the same text is labelled 'bank' and 'shop': t.csv:2",
        "3 texts nearly the same as another one",
        "  t.csv:2 and t.csv:4",
        "length: 5 characters or 1 word in the median, at most 10 characters or 2 words",
        "scripts: Latin 5, Devanagari 2, Cyrillic 1, none 2",
    ]


def test_five_pairs_of_near_duplicates_are_shown(tmp_path: Path) -> None:
    report = text_health(from_texts([f"text {n}{end}" for n in range(7) for end in "?!"]))
    near = report.index("14 texts nearly the same as another one")
    assert report[near + 1] == "  row 0 and row 1"
    assert report[near + 6] == "  and 2 more pairs"


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Grüße", "Latin"),
        ("ok — да, да", "Cyrillic"),
        ("مرحبا", "Arabic"),
        ("漢字", "CJK"),
        ("12 🙂", ""),
        ("ひらがな字", "Hiragana"),
    ],
)
def test_a_text_is_in_the_script_of_most_of_its_letters(text: str, script: str) -> None:
    assert script_of(text) == script


def test_many_texts_that_look_alike_take_no_time() -> None:
    texts = [f"{'same ' * 20}{'!' * (n % 50)}" for n in range(20_000)]
    assert "20,000 texts nearly the same as another one" in text_health(from_texts(texts))
