"""Projects that grow: rows keep their numbers, what is known of others stays, and only what is new is computed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.app.answers import Answer, undo, write_answers
from agcd.app.export.row_tables import prediction_table
from agcd.app.growth import CHANGED, add_items, remove_items
from agcd.app.labels import How, LabelView
from agcd.app.live_rows import find_live_rows
from agcd.app.model import ask, look_at_new_rows, train
from agcd.app.project import Project
from agcd.app.round_files import open_round_view
from agcd.app.rounds import START, RoundView
from agcd.app.status import status_of
from agcd.errors import DataError
from agcd.io import digest_file
from agcd.layout import place_beside
from support.datasets import toy_images
from support.growing import copy_of, put
from support.projects import N_IMAGES, truth


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with Project.open(copy_of(tmp_path)) as project:
        yield project


def view_facts(view: RoundView, n: int) -> dict[str, Any]:
    """What a view says of the first ``n`` rows."""
    assert view.live is not None
    first = view.live.rows < n
    return {
        "slots": np.array(view.top_slots[:n]).tolist(),
        "probabilities": np.array(view.top_probs[:n]).tolist(),
        "positions": np.nan_to_num(view.xy[:n], nan=-99.0).tolist(),
        "stand-ins": view.live.rows[view.live.stand_in[:n]].tolist(),
        "clusters": view.live.cluster[first].tolist(),
        "followed": view.live.rows[first].tolist(),
    }


def both_views(project: Project) -> list[RoundView]:
    views = [open_round_view(project.folder, number) for number in (START, project.last_round)]
    return [view for view in views if view is not None]


def runs_digest(project: Project) -> dict[str, str]:
    return {str(path): digest_file(path) for path in sorted(project.folder.glob("runs/*/*")) if path.suffix != ".lock"}


def test_growing_twice_while_labelling_moves_and_loses_nothing_and_computes_the_new_alone(project: Project) -> None:
    rows = np.flatnonzero(~project.labels().settled).tolist()
    write_answers(project, [Answer(row, truth(project.paths[row])) for row in rows[:8]], "ann", "human")
    computed: list[tuple[int, int]] = []
    for n_per_class, seed in ((2, 1), (1, 2)):
        n, n_new = project.n_rows, 5 * n_per_class
        said, keys, paths = project.labels().answers(), project.keys, project.paths
        before, runs = [view_facts(view, n) for view in both_views(project)], runs_digest(project)
        put(project, n_per_class, seed)
        added = add_items(project)
        assert (added.n_new, added.n_known, added.n_labelled) == (n_new, n, 0)
        assert (project.labels().n_rows, project.n_rows) == (n + n_new, n + n_new)
        assert (project.keys[:n], project.paths[:n], project.labels().answers()) == (keys, paths, said)

        assert project.snapshot().round.n_unseen == status_of(project).n_unseen == n_new  # type: ignore[union-attr]
        computed.clear()
        look_at_new_rows(project, lambda done, total: computed.append((done, total)))
        assert computed[-1] == (n_new, n_new), "features are made for the new pictures only"
        assert [view_facts(view, n) for view in both_views(project)] == before
        assert runs_digest(project) == runs

        snapshot = project.snapshot()
        assert snapshot.round is not None
        assert snapshot.round.n_unseen == 0
        new = np.arange(n, n + n_new)
        assert np.isfinite(snapshot.round.xy[new]).all()
        assert (snapshot.says(new).group >= 0).all(), "new pictures are called something at once"
        assert set(new.tolist()) <= set(snapshot.live.rows.rows.tolist())  # type: ignore[union-attr]
        write_answers(project, [Answer(n, truth(project.paths[n]))], "ann", "human")
        assert project.labels().how(np.array([n]))[0] == How.ANSWERED
    assert train(project).is_new
    assert project.snapshot().round.n_unseen == 0  # type: ignore[union-attr]
    assert len(prediction_table(project, project.trained_snapshot())["path"]) == N_IMAGES + 15


def test_a_round_that_was_broken_off_learns_the_rows_it_began_with(project: Project) -> None:
    rows = np.flatnonzero(~project.labels().settled).tolist()
    write_answers(project, [Answer(row, truth(project.paths[row])) for row in rows[:6]], "ann", "human")
    twin = project.folder.parent / "twin"
    shutil.copytree(project.folder, twin)

    def stop(line: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(project, stop)
    put(project, 2, 3)
    assert add_items(project).n_new == 10
    assert train(project).round == 1
    with Project.open(twin) as other:
        train(other)
    assert digest_file(twin / "runs/001/model.safetensors") == digest_file(project.run_folder(1) / "model.safetensors")
    assert project.snapshot().round.n_unseen == 0, "the new rows are shown all the same"  # type: ignore[union-attr]


def test_questions_of_explicit_rounds_reach_new_rows(project: Project) -> None:
    n = project.n_rows
    put(project, 2, 4)
    add_items(project)
    asked = {question.row for question in ask(project, 50).questions}
    assert asked & set(range(n, n + 10))


def test_folders_name_new_pictures_and_what_nobody_knew_before_training_is_found(project: Project) -> None:
    n, known = project.n_rows, project.labels().registry
    put(project, 1, 5, folder="blue-triangle")
    put(project, 1, 6, folder="kites")
    added = add_items(project)
    assert (added.n_new, added.n_labelled, added.new_classes) == (10, 10, ("kites",))
    labels = project.labels()
    rows = np.arange(n, n + 10)
    assert (labels.how(rows) == How.GIVEN).all()
    names = {labels.registry.infos[place].name for place in labels.classes_of(rows).tolist()}
    assert names == {"blue-triangle", "kites"}
    kites = labels.registry.find("kites")
    assert kites is not None
    assert not kites.is_old
    assert labels.registry.find("blue-triangle") == known.find("blue-triangle")
    assert train(project).is_new
    state, _ = project.label_state(1)
    assert state.classes[state.n_old :] == ("kites",)


def test_labels_of_folders_are_left_alone_where_they_are_not_wanted(project: Project) -> None:
    put(project, 1, 7, folder="blue-triangle")
    added = add_items(project, unlabelled=True)
    assert (added.n_new + len(added.copies), added.n_labelled) == (5, 0)


def test_copies_are_told_and_not_added_and_may_name_what_has_no_answer(project: Project) -> None:
    source = project.folder.parent / "elsewhere" / "kites"
    source.mkdir(parents=True)
    rows = np.flatnonzero(~project.labels().settled)[:2].tolist()
    for row in rows:
        shutil.copy(project.picture_path(row), source / f"copy-{row}.png")
    write_answers(project, [Answer(rows[1], "hats")], "ann", "human")
    toy_images(source.parent, n_classes=1, n_per_class=1, seed=8)
    n = project.n_rows
    added = add_items(project, [source.parent])
    assert (added.n_new, added.n_named, project.labels().n_rows) == (1, 1, n + 1)
    assert sorted(other for _, other in added.copies) == sorted(project.paths[row] for row in rows)
    labels = project.labels()
    names = [labels.registry.infos[place].name for place in labels.classes_of(np.array(rows)).tolist()]
    assert names == ["kites", "hats"], "what a person said stays"
    assert project.paths[n] == (source.parent / "red-circle" / "00.png").as_posix()
    assert project.picture_path(n).is_file()


def test_what_is_removed_is_neither_asked_learned_shown_nor_exported_and_comes_back(project: Project) -> None:
    pool = np.flatnonzero(~project.labels().settled)
    labelled, other = project.labels().rows((How.GIVEN,))[0], pool[0]
    gone = [project.paths[row] for row in (labelled, other)]
    before = len(prediction_table(project, project.trained_snapshot())["path"])
    assert remove_items(project, gone).n == 2
    labels, snapshot = project.labels(), project.snapshot()
    assert labels.how(np.array([labelled, other])).tolist() == [How.REMOVED] * 2
    assert project.label_state()[0].held_out[[labelled, other]].all()
    assert (snapshot.says(np.array([labelled, other])).group == -1).all()
    assert other not in {question.row for question in ask(project, 100).questions}
    exported = prediction_table(project, project.trained_snapshot())["path"]
    assert len(exported) == before - 2
    assert not set(gone) & set(exported)
    status = status_of(project)
    assert (status.n_images, status.n_removed) == (N_IMAGES - 2, 2)
    assert remove_items(project, gone).n_before == 2
    assert add_items(project).n_back == 0, "a look at the folder brings nothing back"
    assert add_items(project, [project.images / gone[0]]).n_back == 1
    assert project.labels().how(np.array([labelled]))[0] == How.GIVEN
    undo(project)
    assert project.labels().how(np.array([other]))[0] == How.NOTHING


def test_another_picture_at_the_path_of_a_removed_one_is_told_and_not_taken_for_it(project: Project) -> None:
    row = int(np.flatnonzero(~project.labels().settled)[0])
    remove_items(project, [project.paths[row]])
    (other,) = put(project, 1, 10)[:1]
    shutil.copy(project.images / other, project.picture_path(row))
    added = add_items(project, [project.picture_path(row)])
    assert (added.n_new, added.n_back) == (0, 0)
    assert [(one.path, one.reason) for one in added.set_aside] == [(project.paths[row], CHANGED)]


def test_a_folder_is_removed_with_all_below_it_and_missing_files_are_found(project: Project) -> None:
    (project.images / project.paths[0]).unlink()
    assert remove_items(project, missing=True).n == 1
    below = [path for path in project.paths if path.startswith("unlabelled/")]
    assert remove_items(project, [str(project.images / "unlabelled")]).n == len(below)
    with pytest.raises(DataError, match="no picture of this project"):
        remove_items(project, ["nowhere"])


def test_a_damaged_picture_is_set_aside_and_taken_once_it_is_whole(project: Project) -> None:
    (path,) = put(project, 1, 9)[:1]
    whole = (project.images / path).read_bytes()
    (project.images / path).write_bytes(whole[: len(whole) // 2])
    n_before = project.n_set_aside
    added = add_items(project)
    assert (added.n_new, [one.path for one in added.set_aside]) == (4, [path])
    assert project.n_set_aside == n_before + 1
    (project.images / path).write_bytes(whole)
    assert add_items(project).n_new == 1
    assert project.n_set_aside == n_before


def test_pictures_in_a_test_folder_are_for_testing(tmp_path: Path) -> None:
    images = tmp_path / "images"
    for name, part in (("train", 0), ("test", 1)):
        toy_images(images / name, n_classes=3, n_per_class=4, seed=part)
    with Project.create(tmp_path / "project", images, settings={"backbone": {"name": "toy", "image_size": 32}}) as made:
        toy_images(tmp_path / "more", n_classes=3, n_per_class=1, seed=20)
        for fresh, place in (("red-circle", "train"), ("green-square", "train"), ("blue-triangle", "test")):
            shutil.copy(tmp_path / "more" / fresh / "00.png", images / place / fresh / "new.png")
        added = add_items(made)
        assert (added.n_new, added.n_test, added.n_labelled) == (3, 1, 2)
        assert made.labels().is_test[24:].tolist() == [False, False, True]
        assert made.is_test.tolist() == made.labels().is_test.tolist()


def unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float16)


def test_live_rows_of_a_large_pool_grow_by_the_same_share_and_keep_their_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agcd.app.live_rows.LIVE_ROWS", 50)
    rng = np.random.default_rng(0)
    x = unit(rng.normal(size=(260, 8)))
    rows = np.arange(200)
    before = find_live_rows(x[:200], rows, rows)
    after = find_live_rows(x, np.arange(260), np.arange(260), before)
    assert len(before.rows) == 50
    assert len(after.rows) == 65
    assert after.rows[:50].tolist() == before.rows.tolist()
    assert after.cluster[:50].tolist() == before.cluster.tolist()
    assert after.stand_in[:200].tolist() == before.stand_in.tolist()
    assert (after.rows[50:] >= 200).all()
    assert (after.stand_in[200:] >= 0).all()


def test_a_class_that_comes_with_new_rows_is_a_group_of_its_own() -> None:
    rng = np.random.default_rng(0)
    middles = np.eye(4, 16) * 6
    x = unit(np.concatenate([middles[np.arange(60) % 3], np.repeat(middles[3:], 20, 0)]) + rng.normal(size=(80, 16)))
    before = find_live_rows(x[:60], np.arange(60), np.arange(60))
    after = find_live_rows(x, np.arange(80), np.arange(80), before)
    assert not set(after.cluster[60:].tolist()) & set(before.cluster.tolist())


def test_new_rows_lie_beside_those_most_like_them() -> None:
    x = unit(np.concatenate([np.eye(3)[[0] * 20 + [1] * 20], np.eye(3)[[0, 1]]]) + 0.01)
    xy = np.full((42, 2), np.nan, np.float32)
    xy[:20], xy[20:40] = (-1, 0), (1, 0)
    np.testing.assert_allclose(place_beside(x, np.array([40, 41]), xy), [[-1, 0], [1, 0]], atol=1e-3)


def test_a_view_of_rows_that_the_records_have_lost_is_made_again(project: Project) -> None:
    older = project.folder.parent / "older.db"
    project.store.copy_to(older)
    put(project, 1, 11)
    add_items(project)
    look_at_new_rows(project)
    project.close()
    for name in ("project.db-wal", "project.db-shm", "project.db-last"):
        (project.folder / name).unlink(missing_ok=True)
    shutil.copy(older, project.folder / "project.db")
    with Project.open(project.folder) as again:
        assert again.snapshot().round is None
        train(again)
        assert again.snapshot().round.n_rows == N_IMAGES  # type: ignore[union-attr]


def test_a_view_before_rows_came_says_nothing_of_them(project: Project) -> None:
    labels = LabelView.empty(project.is_test)
    view = open_round_view(project.folder, 0)
    assert view is not None
    longer = view.over(labels.n_rows + 3)
    assert (longer.n_rows, longer.n_unseen) == (labels.n_rows + 3, 3)
    assert (longer.top_slots[-3:] == -1).all()
    assert longer.over(labels.n_rows + 5).n_unseen == 5
    assert longer.train_rows.tolist() == view.train_rows.tolist()
