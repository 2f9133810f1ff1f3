"""Live beliefs: following answers comes to the same as starting anew; groups are never called what people deny."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agcd.accuracy import CHOSEN, DRAWN
from agcd.app.answers import Answer, merge_classes, release_audit, undo, write_answers
from agcd.app.figures import Figures, figures_of
from agcd.app.labels import How, LabelView
from agcd.app.live import LiveLog
from agcd.app.live_questions import claim_live
from agcd.app.live_rows import find_live_rows
from agcd.app.project import Project
from agcd.app.round_files import write_round_view
from agcd.app.rounds import START, RoundView
from agcd.app.snapshot import Snapshot
from agcd.app.store.events import LabelEvent, new_uid
from agcd.app.store.queries import DRAWN as DRAWN_REASON
from agcd.types import IntArray
from support.projects import make_project

N, N_CLASSES = 120, 6


def features(n: int = N, seed: int = 0) -> tuple[np.ndarray, IntArray]:
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % N_CLASSES
    x = 3 * rng.normal(size=(N_CLASSES, 16))[truth] + rng.normal(size=(n, 16))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float16), truth


def start_view(folder: Path, labels: LabelView, x: np.ndarray) -> RoundView:
    rows = np.flatnonzero(~labels.is_test)
    live = find_live_rows(x, rows, np.arange(len(x)))
    slots = live.cluster[live.stand_in].astype(np.int32)[:, None]
    n = live.n_clusters
    facts = {"model_id": new_uid(), "n_old": 0, "n_slots": n, "class_ids": [None] * n}
    return write_round_view(folder, START, slots, np.zeros(slots.shape, np.float16), x, labels, facts, live)


def labels_after(events: list[LabelEvent], is_test: np.ndarray) -> LabelView:
    numbered = [LabelEvent(**{**event.__dict__, "id": i}) for i, event in enumerate(events, start=1)]
    return LabelView.empty(is_test).after(numbered)


def create(c: int) -> LabelEvent:
    return LabelEvent("create", "me", "human", class_id=f"{c:032x}", payload={"name": f"class {c}", "old": False})


def label(row: int, c: int) -> LabelEvent:
    return LabelEvent("label", "me", "human", row, f"{c:032x}", group=new_uid())


STEPS = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N_CLASSES - 1), st.booleans()), min_size=1, max_size=25
)


@settings(max_examples=10, deadline=None)
@given(STEPS)
def test_following_answers_and_undos_equals_starting_anew(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, bool]]
) -> None:
    x, _ = features()
    events = [create(c) for c in range(N_CLASSES)]
    empty = labels_after(events, np.zeros(N, np.bool_))
    seen = start_view(tmp_path_factory.mktemp("view"), empty, x)
    log, said = LiveLog(), list[LabelEvent]()
    for row, c, takes_back in steps:
        if takes_back and said:
            events.append(LabelEvent("void", "me", "human", payload={"target": said.pop().group}))
        else:
            said.append(label(row, c))
            events.append(said[-1])
        followed = log.view(labels_after(events, empty.is_test), seen)
    anew = LiveLog().view(labels_after(events, empty.is_test), seen)
    assert followed is not None
    assert anew is not None
    np.testing.assert_array_equal(followed.y_class, anew.y_class)
    np.testing.assert_allclose(followed.belief.margin, anew.belief.margin, atol=1e-3)
    clear = anew.belief.margin > 0.01
    np.testing.assert_array_equal(followed.belief.y_class[clear], anew.belief.y_class[clear])


def test_looking_back_at_an_earlier_moment_leaves_what_is_followed_as_it_is(tmp_path: Path) -> None:
    x, truth = features()
    events = [create(c) for c in range(N_CLASSES)] + [label(row, int(truth[row])) for row in range(12)]
    moments = [labels_after(events[:n], np.zeros(N, np.bool_)) for n in range(N_CLASSES + 2, len(events) + 1)]
    seen, log, none = start_view(tmp_path, moments[0], x), LiveLog(), np.empty(0, np.int64)
    for labels in moments:
        log.view(labels, seen)
    asked, now = log.question(moments[-1], seen, none, 0), log.view(moments[-1], seen)
    earlier, anew = log.view(moments[0], seen), LiveLog().view(moments[0], seen)
    assert earlier is not None
    assert anew is not None
    np.testing.assert_array_equal(earlier.y_class, anew.y_class)
    np.testing.assert_allclose(earlier.belief.margin, anew.belief.margin, atol=1e-4)
    assert [c for c, _ in earlier.suggested(np.array([5]))[0]] == [c for c, _ in anew.suggested(np.array([5]))[0]]
    assert log.question(moments[-1], seen, none, 0) == asked
    assert log.view(moments[-1], seen) is now


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Twelve tiny pictures; the views of the tests take the place of real features."""
    return make_project(tmp_path, n_classes=None)


def live_project(project: Project) -> tuple[Project, IntArray]:
    x, truth = features(project.n_rows, 1)
    start_view(project.folder, project.labels(), x)
    return project, truth


def ask(project: Project, who: str = "ann", holder: str | None = None, **options: object) -> int | None:
    seen = project.snapshot().round
    assert seen is not None
    found = claim_live(project.store, project.log, project.live, seen, who, holder=holder, **options)  # type: ignore[arg-type]
    return found.row if found else None


def test_a_browser_that_asks_again_gets_its_question_and_two_people_never_the_same(project: Project) -> None:
    project, _ = live_project(project)
    first = ask(project, "ann", "ann-1")
    assert ask(project, "ann", "ann-1") == first
    others = [ask(project, "ann", "ann-2"), ask(project, "bob", "bob-1")]
    assert len({first, *others}) == 3


def test_a_question_that_was_left_behind_comes_before_a_new_one(project: Project) -> None:
    project, _ = live_project(project)
    left = ask(project, "ann", "ann-1", now=0.0, seconds=10.0)
    assert ask(project, "bob", "bob-1", now=5.0) != left
    assert ask(project, "cid", "cid-1", now=20.0) == left


def test_questions_go_on_until_every_picture_is_answered_and_none_comes_twice(project: Project) -> None:
    project, truth = live_project(project)
    asked = []
    while (row := ask(project)) is not None:
        asked.append(row)
        write_answers(project, [Answer(row, f"class {truth[row]}")], "ann", "human")
    n_open = int((~project.is_test).sum()) - project.labels().n(How.GIVEN)
    assert len(asked) == len(set(asked)) == n_open


def test_every_fourth_question_is_drawn_and_its_answer_says_so(project: Project) -> None:
    project, truth = live_project(project)
    for _ in range(8):
        row = ask(project)
        assert row is not None
        write_answers(project, [Answer(row, f"class {truth[row]}")], "ann", "human")
    reasons = project.store.select("SELECT reason FROM questions ORDER BY rowid")
    assert [reason == DRAWN_REASON for (reason,) in reasons] == [False, False, False, True] * 2
    live = project.snapshot().live
    assert live is not None
    kinds = live.judgement.checked.kind
    assert (kinds == DRAWN).sum() == 2
    assert (kinds == CHOSEN).sum() == 6


def test_no_figure_is_told_before_twenty_answers_and_a_page_does_not_count_as_checks(project: Project) -> None:
    project, truth = live_project(project)
    rows = np.flatnonzero(~project.labels().settled)[:5].tolist()
    write_answers(project, [Answer(row, f"class {truth[row]}") for row in rows], "ann", "human")
    figures = figures_of(project.snapshot())
    assert figures is not None
    assert figures.headline == "not checked yet"
    assert figures.n_checks == 0


def test_what_was_accepted_without_a_look_makes_no_figure_better(project: Project) -> None:
    project, truth = live_project(project)
    for _ in range(22):
        row = ask(project)
        assert row is not None
        write_answers(project, [Answer(row, f"class {truth[row]}")], "ann", "human")
    snapshot, before = project.snapshot(), figures_of(project.snapshot())
    rows = np.flatnonzero(~snapshot.labels.settled)
    names = [snapshot.names[group] for group in snapshot.says(rows).group.tolist()]
    assert before is not None
    assert before.accuracy is not None

    def accepted(*, unseen: bool) -> Figures:
        said = [Answer(r, name, by_page=True, unseen=unseen) for r, name in zip(rows.tolist(), names, strict=True)]
        write_answers(project, said, "ann", "human")
        found = figures_of(project.snapshot())
        assert found is not None
        return found

    after = accepted(unseen=True)
    assert project.labels().unseen.tolist() == rows.tolist()
    assert (after.accuracy, after.n_checked, after.headline) == (before.accuracy, before.n_checked, before.headline)
    assert after.n_wrong == pytest.approx(before.n_wrong)
    undo(project)
    assert not len(project.labels().unseen)
    assert accepted(unseen=False).headline.endswith("checked")


def test_names_follow_answers_merges_and_undo_at_once(project: Project) -> None:
    project, truth = live_project(project)
    row = int(np.flatnonzero(~project.labels().settled)[0])
    same = [int(r) for r in np.flatnonzero(~project.labels().settled) if truth[r] == truth[row] and r != row]
    before = project.snapshot().says(np.array(same)).group.tolist()
    write_answers(project, [Answer(row, "zebra")], "ann", "human")
    snapshot = project.snapshot()
    zebra = snapshot.labels.registry.find("zebra")
    assert zebra is not None
    called = {snapshot.names[g] for g in snapshot.says(np.array([row])).group}
    assert called == {"zebra"}
    write_answers(project, [Answer(same[0], "horse")], "ann", "human")
    horse = project.labels().registry.find("horse")
    assert horse is not None
    merge_classes(project, horse.id, zebra.id)
    assert project.snapshot().says(np.array([same[0]])).group[0] == project.snapshot().says(np.array([row])).group[0]
    for _ in range(3):
        undo(project)
    assert project.snapshot().says(np.array(same)).group.tolist() == before


def test_answers_of_an_audit_check_the_names_and_teach_only_when_released(project: Project) -> None:
    project, truth = live_project(project)
    rows = np.flatnonzero(~project.labels().settled)[:4].tolist()
    write_answers(project, [Answer(row, f"class {truth[row]}") for row in rows], "ann", "human", audit=True)
    live = project.snapshot().live
    assert live is not None
    assert live.n_checks == 4
    assert (live.y_class[live.rows.stand_in[rows]] < 0).all()
    assert release_audit(project) == 4
    live = project.snapshot().live
    assert live is not None
    assert (live.y_class[live.rows.stand_in[rows]] >= 0).all()
    assert project.labels().n(How.ANSWERED) == 4


def test_rows_of_a_large_pool_are_called_what_their_stand_in_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from agcd.app import live_rows

    monkeypatch.setattr(live_rows, "LIVE_ROWS", 40)
    x, truth = features(400, 2)
    events = [create(c) for c in range(N_CLASSES)] + [label(row, int(truth[row])) for row in range(0, 100, 5)]
    labels = labels_after(events, np.zeros(400, np.bool_))
    seen = start_view(tmp_path, labels, x)
    assert seen.live is not None
    assert len(seen.live.rows) == 40
    view = LiveLog().view(labels, seen)
    assert view is not None
    called = view.belief.y_class[seen.live.stand_in]
    assert (called == truth).mean() > 0.9
    snapshot = Snapshot(labels, seen, live_log=LiveLog())
    rows = np.arange(400)
    numbers, said, margin = snapshot.machine_numbers(rows), snapshot.says(rows).group, snapshot.margin(rows)
    for group in snapshot.groups.values():
        number = snapshot.number(group)
        clearest = rows[np.lexsort((rows, -margin))]
        is_own, is_believed = said[clearest] == number, numbers[clearest] == number
        members = np.concatenate([clearest[is_own & is_believed], np.sort(clearest[is_own & ~is_believed])])
        for n in (None, 0, 1, 7, 400):
            assert snapshot.members(group, n).tolist() == members[:n].tolist()
        assert snapshot.size(group) == len(members)


def test_a_picture_that_a_person_named_is_in_no_other_group_whatever_lies_around_it(project: Project) -> None:
    project, truth = live_project(project)
    rows = np.flatnonzero(~project.labels().settled)
    odd = int(rows[truth[rows] == truth[rows[0]]][1])
    others = [int(row) for row in rows if truth[row] == truth[odd] and row != odd]
    said = [Answer(row, "common") for row in others] + [Answer(odd, "odd one")]
    write_answers(project, said, "ann", "human")
    snapshot = project.snapshot()
    members = {group.name: snapshot.members(group).tolist() for group in snapshot.groups.values()}
    assert odd in members["odd one"]
    assert sum(odd in found for found in members.values()) == 1
    assert all(
        len(found) == snapshot.size(group) for group in snapshot.groups.values() for found in [members[group.name]]
    )
