"""PIM: its loss, where it starts, how it chooses the weight of the entropy, and what it leaves alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from agcd.rng import generator
from agcd.training.fitted import Fitted
from agcd.training.job import Outcome, TrainingJob, new_model
from agcd.training.kmeans import semi_supervised_kmeans
from agcd.training.loop import read_log
from agcd.training.pim import PIM, information_loss
from support.blobs import Blobs, fast_config, make_blobs

FEW: dict[str, Any] = {"steps": 30, "round_steps": 20, "search_steps": 5, "entropy_weights": [0.2, 0.6], "n_init": 3}


def slow_information_loss(weights: Any, x: Any, y_slot: list[int], scale: float, entropy_weight: float) -> float:
    """From the formula, row by row."""
    n, n_slots = len(x), len(weights)
    probs = []
    for row in x:
        powers = [math.exp(scale * sum(w * f for w, f in zip(weights[k], row, strict=True))) for k in range(n_slots)]
        probs.append([power / sum(powers) for power in powers])
    entropies = [-sum(p * math.log(p) for p in row) for row, y in zip(probs, y_slot, strict=True) if y < 0]
    mean = [sum(row[k] for row in probs) / n for k in range(n_slots)]
    hits = [-math.log(row[y]) for row, y in zip(probs, y_slot, strict=True) if y >= 0]
    conditional = sum(entropies) / len(entropies) if entropies else 0.0
    supervised = sum(hits) / len(hits) if hits else 0.0
    return entropy_weight * conditional + sum(p * math.log(p) for p in mean) + supervised


@pytest.mark.parametrize("y_slot", [[0, -1, 2, -1, -1, 2], [-1] * 6, [1, 0, 2, 2, 1, 0]], ids=["some", "none", "all"])
def test_the_loss_and_its_gradient_equal_a_slow_twin(y_slot: list[int]) -> None:
    rng = np.random.default_rng(0)
    start, x = rng.normal(size=(3, 4)) * 0.2, rng.normal(size=(6, 4)) * 0.5
    weights = torch.tensor(start, requires_grad=True)
    y = torch.tensor(y_slot)
    labelled, unlabelled = ((is_in).nonzero().flatten() for is_in in (y >= 0, y < 0))
    loss = information_loss(5 * torch.tensor(x) @ weights.T, y[labelled], labelled, unlabelled, 0.3)
    assert float(loss.detach()) == pytest.approx(slow_information_loss(start, x, y_slot, 5, 0.3))
    loss.backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None
    for k, j in np.ndindex(3, 4):
        nudge = np.zeros((3, 4))
        nudge[k, j] = 1e-5
        up, down = (slow_information_loss(start + sign * nudge, x, y_slot, 5, 0.3) for sign in (1, -1))
        assert float(weights.grad[k, j]) == pytest.approx((up - down) / 2e-5, abs=1e-7)


def fitted_base(blobs: Blobs, folder: Path, **pim: Any) -> Outcome:
    config = fast_config(pim={**FEW, **pim}).train
    return PIM(config).fit(TrainingJob(blobs.features, blobs.labels, 6, 0, 0, folder))


def unit_features(fitted: Fitted, blobs: Blobs) -> torch.Tensor:
    return F.normalize(fitted.embed(blobs.features, np.arange(120)), dim=1)


def test_it_starts_at_the_centres_of_semi_supervised_kmeans(tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = fitted_base(blobs, tmp_path, steps=0).fitted
    x = unit_features(fitted, blobs).numpy()
    centres = semi_supervised_kmeans(x, blobs.labels.y_class, 6, generator(0, "kmeans")).centres
    np.testing.assert_allclose(fitted.student.prototypes.detach().numpy(), centres, atol=1e-6)


def test_probabilities_are_the_softmax_of_the_scaled_products(tmp_path: Path) -> None:
    blobs = make_blobs()
    fitted = fitted_base(blobs, tmp_path, scale=7.0).fitted
    expected = (7 * unit_features(fitted, blobs) @ fitted.ema.prototypes.detach().T).softmax(1)
    np.testing.assert_allclose(fitted.predict(blobs.features, np.arange(120)).probs, expected, atol=1e-6)


def test_the_weight_that_clusters_the_labelled_rows_best_is_chosen_and_kept_in_rounds(tmp_path: Path) -> None:
    blobs = make_blobs(ratio=0.6)
    base = fitted_base(blobs, tmp_path / "base", entropy_weights=[0.5, 30.0], search_steps=60, lr=0.05)
    lines = read_log(tmp_path / "base" / "log.jsonl")
    tried = {line["entropy_weight"]: line["labelled_accuracy"] for line in lines if "labelled_accuracy" in line}
    assert tried[0.5] < tried[30.0]
    assert base.fitted.facts["entropy_weight"] == 30.0
    rows = np.array([65])
    labels = blobs.labels.tell(rows, blobs.names(rows), 1)
    other = PIM(fast_config(pim={**FEW, "entropy_weights": [0.9]}).train)
    job = TrainingJob(blobs.features, labels, 6, 0, 1, tmp_path / "round", base.fitted, base.last)
    assert other.fit(job).fitted.facts["entropy_weight"] == 30.0
    assert all("labelled_accuracy" not in line for line in read_log(tmp_path / "round" / "log.jsonl"))


def test_without_labels_or_without_a_choice_nothing_is_tried(tmp_path: Path) -> None:
    unlabelled = fitted_base(make_blobs(n_old=0, ratio=0.0), tmp_path / "a", entropy_weights=[0.7, 0.2])
    single = fitted_base(make_blobs(), tmp_path / "b", entropy_weights=[0.4])
    assert (unlabelled.fitted.facts["entropy_weight"], single.fitted.facts["entropy_weight"]) == (0.7, 0.4)
    assert len(read_log(tmp_path / "a" / "log.jsonl")) == len(read_log(tmp_path / "b" / "log.jsonl")) == 1


def test_features_stay_frozen_and_student_and_average_are_one(tmp_path: Path) -> None:
    blobs = make_blobs()
    base = fitted_base(blobs, tmp_path)
    job = TrainingJob(blobs.features, blobs.labels, 6, 0, 0, tmp_path)
    start = new_model(job, fast_config(projector_width=1, projector_dim=1).train, "linear").student.state_dict()
    student, ema = base.fitted.student.state_dict(), base.fitted.ema.state_dict()
    assert {name for name in start if not torch.equal(start[name], student[name])} == {"prototypes"}
    assert all(torch.equal(student[name], ema[name]) for name in student)


def test_answers_are_learned_in_the_slot_that_the_mapping_gives_their_class(tmp_path: Path) -> None:
    blobs = make_blobs()
    base = fitted_base(blobs, tmp_path / "base")
    rows = np.array([65, 66, 85, 86, 105, 106])
    labels = blobs.labels.tell(rows, blobs.names(rows), 1)
    config = fast_config(pim={**FEW, "round_steps": 150}).train
    done = PIM(config).fit(TrainingJob(blobs.features, labels, 6, 0, 1, tmp_path / "round", base.fitted, base.last))
    found = done.fitted.predict(blobs.features, labels.labelled_rows).y_slot
    assert (found == done.last.slot_of_class[labels.y_class[labels.labelled_rows]]).mean() > 0.9


def test_a_round_starts_at_the_means_of_the_clusters_with_the_answers_where_they_belong(tmp_path: Path) -> None:
    blobs = make_blobs()
    base = fitted_base(blobs, tmp_path / "base")
    rows = np.array([65, 85, 105])
    labels = blobs.labels.tell(rows, blobs.names(rows), 1)
    job = TrainingJob(blobs.features, labels, 6, 0, 1, tmp_path / "round", base.fitted, base.last)
    still = {**FEW, "round_steps": 1, "lr": 1e-12, "weight_decay": 0.0}
    done = PIM(fast_config(pim=still).train).fit(job)

    before = base.fitted.predict(blobs.features, labels.train_rows)
    members: dict[int, list[Any]] = {}
    for row, slot, vector in zip(before.rows, before.y_slot, before.features, strict=True):
        y = int(labels.y_class[row])
        own = int(slot) if y < 0 else int(done.first.slot_of_class[y])
        members.setdefault(own, []).append(vector)
    for slot, vectors in members.items():
        mean = torch.from_numpy(np.mean(vectors, axis=0))
        torch.testing.assert_close(done.fitted.student.prototypes[slot], mean, atol=1e-6, rtol=1e-5)
