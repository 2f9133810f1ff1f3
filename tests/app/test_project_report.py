"""The report of a project without ground truth: what people said, what each round left, and nothing made up."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.accuracy import wilson
from agcd.app.answers import Answer, find_class, merge_classes, rename_class, write_answers
from agcd.app.labels import LabelView
from agcd.app.model import train
from agcd.app.project import Project
from agcd.app.report import project_story, write_project_report
from agcd.app.rounds import RoundView, audit_of, mapping_changes
from agcd.app.store.classes import ClassInfo, Registry
from agcd.app.store.events import LabelEvent
from agcd.errors import ConfigError
from agcd.report import Estimate, write_report
from agcd.report.numbers import round_table
from agcd.words import count
from support.projects import answer_all, make_project, predictions, truth


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with base training and one round; tests work on copies."""
    with make_project(tmp_path_factory.mktemp("finished")) as project:
        train(project)
        answer_all(project, 8)
        train(project)
        return project.folder


@pytest.fixture
def project(finished: Path, tmp_path: Path) -> Iterator[Project]:
    shutil.copytree(finished, tmp_path / "birds")
    with Project.open(tmp_path / "birds") as opened:
        yield opened


def told_page(project: Project, out: Path) -> tuple[str, str]:
    """The source of the page, and its words."""
    source = write_project_report(project, out).read_text(encoding="utf-8")
    body = re.sub(r"<style>.*?</style>", "", source, flags=re.DOTALL)
    return source, " ".join(re.sub(r"<[^>]*>", " ", body).split())


def audit(project: Project, n: int) -> list[int]:
    """Answer ``n`` rows of the pool blind, as they truly are."""
    rows: list[int] = project.label_state()[0].pool_rows[:n].tolist()
    answers = [Answer(row, truth(project.paths[row])) for row in rows]
    write_answers(project, answers, "ann", "human", audit=True)
    return rows


def fact(project: Project, key: str) -> str:
    return dict(project_story(project).facts)[key]


def test_before_training_there_is_nothing_to_report(tmp_path: Path) -> None:
    with make_project(tmp_path) as project, pytest.raises(ConfigError, match="Nothing is trained yet: run agcd train"):
        write_project_report(project, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_deleted_cache_is_one_sentence_with_the_command(project: Project, tmp_path: Path) -> None:
    shutil.rmtree(project.folder / "cache")
    with pytest.raises(ConfigError, match=rf"round 1 .* run agcd train {project.folder} "):
        write_project_report(project, tmp_path / "out")


def test_the_page_tells_the_project_and_its_rounds(project: Project, tmp_path: Path) -> None:
    source, words = told_page(project, tmp_path / "out")
    assert "Category discovery in birds" in words
    assert "9 in 3 classes" in words
    assert "me (8)" in words
    assert "base training and 1 round" in words
    assert "propagation_herding" in words
    assert "toy, 2 views of 32 pixels" in words
    assert "agcd report birds --out birds-report" in words
    assert str(tmp_path) not in source
    assert all(address.startswith("data:image/") for address in re.findall(r'(?:src|href)="([^"]*)"', source))
    assert (tmp_path / "out" / "figures" / "map.png").exists()


def test_nothing_is_claimed_that_needs_truth(project: Project, tmp_path: Path) -> None:
    story = project_story(project)
    heads = [column.head for column in round_table("", story.rounds).columns]
    assert heads == ["Labels", "Classes", "Named", "Agreement", "Regrouped"]
    assert [(facts.n_labels, facts.n_taught) for facts in story.rounds] == [(0, 9), (8, 17)]
    words = told_page(project, tmp_path / "out")[1]
    assert "There is no ground truth" in words
    assert "A blind audit would" in words
    assert not (tmp_path / "out" / "figures" / "accuracy.png").exists()


def test_a_blind_audit_is_told_with_its_interval(project: Project, tmp_path: Path) -> None:
    rows = audit(project, 12)
    last = project_story(project).rounds[-1]
    assert last.audit is not None
    assert last.audit.n == len(rows) == 12
    assert 0 <= last.audit.low <= last.audit.share <= last.audit.high <= 1
    words = told_page(project, tmp_path / "out")[1]
    assert (
        f"{100 * last.audit.low:.0f}–{100 * last.audit.high:.0f}\u00a0%" in (tmp_path / "out/report.html").read_text()
    )
    assert "Right in the blind audit" in words
    assert "12 pictures drawn at random and answered blind" in words
    assert "a blind audit stands in for it" in words
    assert "12 in a blind audit" in fact(project, "Answers")


def test_both_maps_show_the_same_rows_under_the_same_numbers(project: Project) -> None:
    before, after = project_story(project).maps
    assert [before.title, after.title] == ["After base training", "After round 1"]
    assert before.names == after.names
    assert np.array_equal(before.y_class, after.y_class)
    assert len(before.xy) == 50
    assert after.queried.sum() == 8
    assert not np.array_equal(before.xy, after.xy)


def test_the_map_takes_peoples_word_before_the_models(project: Project) -> None:
    labels = project.label_state()[0]
    shown = project_story(project).maps[-1]
    for row in labels.labelled_rows.tolist():
        assert shown.names[shown.y_class[row]] == truth(project.paths[row])


def test_confidence_is_that_of_the_rows_nobody_labelled(project: Project) -> None:
    pool = project.label_state()[0].pool_rows
    for moment in project_story(project).confidence:
        assert len(moment.old) + len(moment.new) == len(pool) == 33
        assert 0 < moment.old.min(initial=1) <= moment.new.max(initial=1) <= 1


def test_purity_is_the_share_of_labelled_members_that_carry_the_name(project: Project) -> None:
    story = project_story(project)
    assert sum(strip.size for strip in story.classes) == 50
    assert sum(strip.n_checked or 0 for strip in story.classes) <= 17
    named = [strip for strip in story.classes if strip.n_checked]
    assert all(strip.is_named and strip.purity is not None and 0 <= strip.purity <= 1 for strip in named)
    assert sum(len(strip.queried_rows) for strip in story.classes) == 8


def test_merged_classes_are_one_strip(project: Project) -> None:
    one, other = [strip.name for strip in project_story(project).classes if not strip.is_new][:2]
    sizes = {strip.name: strip.size for strip in project_story(project).classes}
    merge_classes(project, find_class(project, one).id, find_class(project, other).id, "ann")
    merged = {strip.name: strip.size for strip in project_story(project).classes}
    assert one not in merged
    assert merged[other] == sizes[one] + sizes[other]


def test_junk_belongs_to_no_class(project: Project) -> None:
    row = int(project.label_state()[0].pool_rows[0])
    write_answers(project, [Answer(row, "junk")])
    story = project_story(project)
    assert sum(strip.size for strip in story.classes) == 49
    assert len(story.maps[0].xy) == 49
    assert not any(row in strip.typical_rows for strip in story.classes)


def test_labels_after_the_last_round_are_said_to_have_come_later(project: Project) -> None:
    row = int(project.label_state()[0].pool_rows[0])
    write_answers(project, [Answer(row, "never seen before")], "bob")
    assert fact(project, "Rounds") == "base training and 1 round; 1 label came in later"
    strip = next(s for s in project_story(project).classes if s.name == "never seen before")
    assert (strip.size, strip.queried_rows.tolist(), strip.is_new) == (1, [row], True)


def test_people_and_their_agreement_are_told(project: Project) -> None:
    row, other = project.label_state()[0].pool_rows[:2].tolist()
    for who, name in (("ann", "kite"), ("bob", "kite")):
        write_answers(project, [Answer(row, name)], who)
    for who, name in (("ann", "kite"), ("bob", "swan")):
        write_answers(project, [Answer(other, name)], who)
    assert (
        fact(project, "People")
        == "me (8), ann (2), bob (2); they agree on 50.0\u00a0% of 2 pictures that several labelled"
    )


def test_a_lost_first_map_leaves_the_last_one(project: Project, tmp_path: Path) -> None:
    shutil.rmtree(project.folder / "cache" / "rounds" / "000")
    story = project_story(project)
    assert [each.title for each in story.maps] == ["After round 1"]
    assert [facts.named is None for facts in story.rounds] == [True, False]
    assert told_page(project, tmp_path / "out")


def test_hostile_names_are_shown_as_text(project: Project, tmp_path: Path) -> None:
    names = ['<script>alert("x")</script>', "w" * 200, "\u200fمرحبا\u200e {{ 7 * 7 }}"]
    for strip, name in zip(project_story(project).classes, names, strict=False):
        rename_class(project, find_class(project, strip.name).id, name, "ann")
    row = int(project.label_state()[0].pool_rows[0])
    write_answers(project, [Answer(row, "<img src=x onerror=alert(1)>")], "<b>ann</b>")
    source, words = told_page(project, tmp_path / "out")
    assert "<script" not in source
    assert "<img src=x" not in source
    assert "<b>ann" not in source
    assert "&lt;script&gt;alert" in source
    assert "{{ 7 * 7 }}" in words
    assert "w" * 60 not in words, "a long name is cut"
    assert "\u200f" not in source


def test_a_file_that_changed_since_the_scan_does_not_leave_with_the_report(project: Project, tmp_path: Path) -> None:
    shutil.copytree(project.images, tmp_path / "images")
    project.images = tmp_path / "images"
    row = int(project_story(project).classes[0].typical_rows[0])
    other = project.images / project.paths[row - 1]
    (project.images / project.paths[row]).write_bytes(other.read_bytes())
    assert f"{project.paths[row]} (typical, image not readable)" in told_page(project, tmp_path / "out")[0]


def test_without_the_images_their_files_are_listed(project: Project, tmp_path: Path) -> None:
    project.images = tmp_path / "gone"
    strip = max(project_story(project).classes, key=lambda strip: strip.size)
    assert f"most typical: {project.paths[strip.typical_rows[0]]}, " in told_page(project, tmp_path / "out")[1]


# ------------------------------------------------------------------------------------------------ a second look


def test_doubtful_pictures_are_the_least_sure_names_that_nobody_checked(project: Project, tmp_path: Path) -> None:
    doubts, table = project_story(project).doubts, predictions(project)
    columns = (table[name] for name in ("row", "certainty", "class", "by"))
    found = [(row, certainty, name, by) for row, certainty, name, by in zip(*columns, strict=True)]
    unchecked = {row: sure for row, sure, name, by in found if by == "answers" and not name.startswith("unnamed")}
    assert [round(doubt.certainty, 4) for doubt in doubts] == sorted(unchecked.values())[: len(doubts)]
    assert all(unchecked[doubt.row] == round(doubt.certainty, 4) for doubt in doubts)
    assert len(doubts) == min(24, len(unchecked)) > 0
    words = told_page(project, tmp_path / "out")[1]
    assert "Doubtful pictures" in words
    for doubt in doubts:
        assert f"{doubt.name} {100 * doubt.certainty:.0f} % sure {project.paths[doubt.row]}" in words


def test_confused_classes_stand_side_by_side(project: Project, tmp_path: Path) -> None:
    rows = [doubt.row for doubt in project_story(project).doubts if doubt.name == "blue-triangle"][:2]
    write_answers(project, [Answer(row, "green-square") for row in rows])
    write_answers(project, [Answer(rows[0], "green-square")], "ann", audit=True)
    pairs = {frozenset((pair.one, pair.other)): pair for pair in project_story(project).confusions}
    pair = pairs[frozenset(("blue-triangle", "green-square"))]
    assert set(rows) <= {each.row for each in pair.disputed}
    assert all(
        (each.said, each.predicted) == ("green-square", "blue-triangle") for each in pair.disputed if each.row in rows
    )
    assert not {each.row for each in pair.disputed} & {*pair.one_rows.tolist(), *pair.other_rows.tolist()}
    assert len(pair.one_rows) > 0 < len(pair.other_rows)
    source, words = told_page(project, tmp_path / "out")
    assert "people: green-square model: blue-triangle" in words
    assert f"People and the model differ on {count(pair.n, 'picture')}." in words
    assert all(project.paths[row] in source for row in rows)


def test_where_all_agree_nothing_is_called_confused(project: Project, tmp_path: Path) -> None:
    story = replace(project_story(project), confusions=())
    words = write_report(story, tmp_path / "out").read_text(encoding="utf-8")
    assert "Classes that are confused" not in words


def test_an_accuracy_that_is_handed_in_is_the_first_figure(project: Project, tmp_path: Path) -> None:
    right = Estimate(40, 0.8312, 0.761, 0.889, 0.9)
    page = write_project_report(project, tmp_path / "out", right).read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "about 83 %" in page
    assert "76–89 %, from 40 checked pictures" in page
    assert "about 83 % of the names are right (76–89 %)." in page
    assert "in\n    90 of 100 such estimates" in page
    assert "no accuracy can be given" not in page


RESEARCHERS_WORDS = {
    "old",
    "novel",
    "slot",
    "slots",
    "margin",
    "loss",
    "seed",
    "seeds",
    "strategy",
    "purity",
    "samples",
}


def test_only_the_last_fold_speaks_to_experts(project: Project, tmp_path: Path) -> None:
    audit(project, 6)
    words = told_page(project, tmp_path / "out")[1]
    for_all, fold, for_experts = words.partition("For experts")
    assert fold
    assert not RESEARCHERS_WORDS & set(re.findall("[a-z]+", for_all.lower()))
    assert {"strategy", "seed", "slots"} <= set(re.findall("[a-z]+", for_experts.lower()))
    assert "known" in for_all
    assert "found by you" in for_all
    assert not re.search(r"\b1 (pictures|classes|groups|answers|labels|rounds)\b", for_all)


def test_the_report_needs_no_torch(project: Project, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom agcd.app.project import Project\n"
        "from agcd.app.report import write_project_report\n"
        "with Project.open(Path(sys.argv[1])) as project:\n    write_project_report(project, Path(sys.argv[2]))\n"
        "assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", code, str(project.folder), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def round_of(slots: list[int], class_ids: list[str | None], number: int = 0) -> RoundView:
    """A round in which row i lies in ``slots[i]``."""
    top = np.array(slots, np.int32)[:, None]
    kept = np.flatnonzero(top[:, 0] >= 0)
    order = kept[np.argsort(top[kept, 0], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(top[kept, 0], minlength=len(class_ids)))])
    facts: dict[str, Any] = {"class_ids": class_ids, "n_old": 1}
    ones = np.ones(top.shape, np.float16)
    return RoundView(number, facts, top, ones, np.zeros((len(slots), 2), np.float32), order, starts, None)


def registry_of(**merged_into: str | None) -> Registry:
    return Registry({c: ClassInfo(c, c.upper(), False, merged_into=into) for c, into in merged_into.items()})


def test_an_audit_counts_unnamed_groups_as_wrong_and_merged_classes_as_one() -> None:
    made = [LabelEvent("create", "", "human", class_id=c, payload={"name": c, "old": False}) for c in "abc"]
    said = [(0, "c"), (1, "a"), (2, "a"), (3, "a")]
    blind = [LabelEvent("label", "ann", "human", row=r, class_id=c, payload={"audit": True}) for r, c in said]
    skip = LabelEvent("skip", "ann", "human", row=4, payload={"audit": True})
    learned = LabelEvent("label", "ann", "human", row=5, class_id="a")
    merge = LabelEvent("merge", "ann", "human", class_id="c", payload={"into": "a"})

    def seen(*events: LabelEvent) -> LabelView:
        numbered = [replace(event, id=i) for i, event in enumerate(events, start=1)]
        return LabelView.empty(np.zeros(6, bool)).after(numbered)

    seen_round = round_of([0, 1, 2, -1, 0, 0], ["a", "b", None])
    found = audit_of(seen(*made, *blind, skip, learned, merge), seen_round)
    assert found is not None
    assert (found.n, found.n_right) == (3, 1)
    assert audit_of(seen(*made, learned), seen_round) is None


def test_the_interval_is_wilsons() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_changes_of_the_mapping_read_as_sentences() -> None:
    before = round_of([0, 1, 2], ["a", "b", "c", None])
    after = round_of([0, 1, 3, 3], ["a", "d", None, "b"], 1)
    assert mapping_changes(registry_of(a=None, b=None, c=None, d=None), before, after) == [
        "Class 'D' is new and has group 1.",
        "Class 'B' moved from group 1 to group 3.",
        "Class 'C' has no group any more.",
        "1 class kept its group.",
    ]
