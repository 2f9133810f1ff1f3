"""Whatever people have is read as they mean it, or they are asked, or told why not: none is silently wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from agcd.errors import AgcdError
from support.input_page import MARK, PAGE
from support.input_table import GROUPS
from support.inputs import Input, line, read, refused, told

CASES = {f"{group}: {case.title}": case for group, cases in GROUPS.items() for case in cases}
REMEDY = "run PYTHONPATH=src:tests python -m support.input_page"


def page_lines() -> list[str]:
    return PAGE.read_text(encoding="utf-8").partition(MARK)[2].splitlines()


def test_the_page_has_a_line_for_every_input_and_no_other() -> None:
    titles = [text.split(" | ")[0].removeprefix("| ") for text in page_lines() if text.startswith("| ")]
    expected = [title for cases in GROUPS.values() for title in ("what is given", *(case.title for case in cases))]
    assert titles == expected, REMEDY
    assert len(set(CASES)) == sum(map(len, GROUPS.values())) >= 60


@pytest.mark.parametrize("name", CASES)
def test_an_input_is_understood_as_it_is_meant_and_as_the_page_says(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    if case.error:
        cell = check_refused(case, tmp_path)
    else:
        reading = read(case, tmp_path)
        cell = told(reading)
        data = reading.dataset
        train = data.y_class[~data.is_test].tolist()
        assert {label: train.count(c) for c, label in enumerate(data.classes) if c in train} == case.classes
        assert (train.count(-1), int(data.is_test.sum())) == (case.unlabelled, case.test)
        reasons = {q.path: q.reason for q in data.quarantine}
        assert reasons.keys() == case.aside.keys()
        assert all(piece in reasons[path] for path, piece in case.aside.items())
        assert bool(reading.doubts) == bool(case.doubt)
        assert all(doubt.endswith(".") and "\n" not in doubt for doubt in reading.doubts)
        assert case.doubt in " ".join(reading.doubts)
        assert case.tree in "\n".join(reading.tree)
    assert line(case, cell) in page_lines(), REMEDY


def check_refused(case: Input, folder: Path) -> str:
    with pytest.raises(AgcdError) as caught:
        read(case, folder)
    assert case.error in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list((folder / "unpacked").glob("*")), "nothing is left of what was unpacked"
    return refused(caught.value, folder)
