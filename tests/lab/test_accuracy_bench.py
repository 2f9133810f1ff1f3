from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from agcd.accuracy import CHOSEN, DRAWN, GIVEN, POOL, Checked, ShiftPrior
from agcd.lab.accuracy.judge import N_BINS, STOPS, judge_project
from agcd.lab.accuracy.learn import learn_prior, learn_weights
from agcd.lab.accuracy.projects import draw_blobs, draw_project
from agcd.lab.accuracy.report import report_accuracy
from agcd.lab.accuracy.simulate import simulate
from agcd.lab.bench import make_cells


def test_projects_of_one_seed_are_equal_and_of_two_are_not() -> None:
    x, y = draw_blobs(np.random.default_rng(0))
    one, same, other = (draw_project(x, y, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.x, same.x)
    np.testing.assert_array_equal(one.y_class, same.y_class)
    assert one.x.shape != other.x.shape


@pytest.mark.parametrize("seed", range(8))
def test_a_project_knows_only_true_labels_of_some_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    project = draw_project(*draw_blobs(rng), rng)
    known = project.y_class >= 0
    assert (project.y_class[known] == project.truth[known]).all()
    assert len(np.unique(project.y_class[known])) < project.truth.max() + 1
    np.testing.assert_array_equal(np.unique(project.truth), np.arange(project.truth.max() + 1))
    np.testing.assert_allclose(np.linalg.norm(project.x, axis=1), 1, rtol=1e-4)


def test_one_question_in_four_is_drawn() -> None:
    rng = np.random.default_rng(3)
    project = draw_project(*draw_blobs(rng), rng)
    (moment,) = simulate(project, rng, (12,), 4)
    kinds = np.bincount(moment.kind, minlength=4)
    assert kinds[DRAWN] == 3
    assert kinds[CHOSEN] == 9
    assert kinds[POOL] == 0
    assert len(moment.pool_right) == (project.y_class < 0).sum() - 12


def test_the_figure_is_near_the_truth_on_blobs() -> None:
    """A small check that can fail: the errors of ten projects, which the full benchmark measures on hundreds."""
    judged = []
    for seed in range(10):
        x, y = draw_blobs(np.random.default_rng([seed, 7]))
        judged += [one for one in judge_project("blobs", x[:600], y[:600], seed, 4) if one.n_answers == STOPS[1]]
    errors = np.array([one.estimate.mean - one.accuracy for one in judged])
    inside = [one.estimate.low <= one.accuracy <= one.estimate.high for one in judged]
    assert np.sqrt(np.mean(errors**2)) < 0.08
    assert np.mean(inside) >= 0.6
    assert all(one.reliability.shape == (3, N_BINS, 3) for one in judged)


def test_the_spread_of_shifts_is_found_again() -> None:
    rng = np.random.default_rng(0)
    true = ShiftPrior(np.array([0.5, 0.2, -0.5, 0.4]), 0.3 * np.eye(4) + 0.3)
    projects = []
    for _ in range(150):
        shift = rng.multivariate_normal(true.mean, true.spread)
        logit, kind = rng.normal(size=800), rng.choice([POOL, GIVEN, CHOSEN, DRAWN], size=800)
        projects.append(Checked(logit, rng.random(800) < expit(logit + shift[kind]), kind))
    found = learn_prior(projects)
    np.testing.assert_allclose(found.mean, true.mean, atol=0.2)
    np.testing.assert_allclose(found.spread, true.spread, atol=0.2)


def test_learned_weights_are_calibrated_on_what_they_were_learned_from() -> None:
    rng = np.random.default_rng(5)
    project = draw_project(*draw_blobs(rng), rng)
    moments = simulate(project, rng, (10, 20), 4)
    weights = learn_weights(moments)
    p = expit(np.concatenate([m.pool.terms() for m in moments]) @ weights)
    assert p.mean() == pytest.approx(np.concatenate([m.pool_right for m in moments]).mean(), abs=0.05)


@pytest.mark.usefixtures("in_this_process")
def test_the_report_has_all_tables_and_a_picture(tmp_path: Path) -> None:
    cells = make_cells(["digits"], ["propagation_herding"], 1, {}, {"label_ratio": 0.2})
    text = report_accuracy(cells, tmp_path, range(2), 4, picture=tmp_path / "curve.png", progress=lambda line: None)
    assert "| data | answers | projects | accuracy | inside 90 % | half-width | bias | RMS |" in text
    assert "What drawing at random costs" in text
    assert "| 90–100 % |" in text
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
