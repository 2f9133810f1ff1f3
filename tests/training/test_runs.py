"""What a round does where the paper's text and its published code differ: queried rows' losses, the first mapping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from agcd.config import AnswersConfig, Config, make_config
from agcd.session import run_key
from agcd.training import get_trainer, mugcd, settings_record
from agcd.training.heads import Output
from agcd.training.job import Outcome, TrainingJob, labelled_mapping
from agcd.training.mugcd import student_loss
from agcd.training.runs import DescentRun, TwoPhaseRun, queried_loss
from agcd.training.sampler import Batch
from agcd.training.simgcd import original_loss
from agcd.types import IntArray, LabelState
from support.blobs import Blobs, fast_config, make_blobs
from support.training_jobs import assert_kills_change_nothing, job, same, told, weights

ASKED = np.array([60, 61, 62, 80, 81, 82, 100, 3])
"""Of all novel classes, and one of an old class."""
two_phase_trainer = pytest.mark.parametrize("name", ["simgcd", "mugcd"])
AS_IN_THE_PAPER: dict[str, Any] = {
    "answers": AnswersConfig().model_dump(),
    "pin_old": False,
    "pim": {"steps": 5, "search_steps": 2},
}
"""Nobody votes but labelled rows, and every class may move."""
Floats = list[list[float]]


class Step(NamedTuple):
    rows: IntArray
    y_class: Tensor
    output: Output
    loss: float


def round_of(
    config: Config, blobs: Blobs, folder: Path, labels: LabelState | None = None
) -> tuple[TrainingJob, Outcome]:
    """A round with answers after base training, ready to be trained; and the base."""
    base = get_trainer(config.train.trainer)(config.train).fit(job(blobs, folder / "base"))
    labels = told(blobs, ASKED) if labels is None else labels
    given = {"labels": labels, "round": 1, "start": base.fitted, "previous": base.last}
    return job(blobs, folder / "round", **given), base


def steps_of(config: Config, task: TrainingJob, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Step], Outcome]:
    """Every step of a round: what the student said about a batch, and the loss that it learned from."""
    steps: list[Step] = []
    descend = DescentRun.descend

    def spy(run: Any, batch: Batch, loss_of: Callable[[Output], Tensor], ema_decay: float) -> Tensor:
        def kept(output: Output) -> Tensor:
            loss = loss_of(output)
            copied = Output(*(part.detach().clone() for part in output))
            steps.append(Step(batch.rows, batch.y_class.clone(), copied, float(loss.detach())))
            return loss

        return descend(run, batch, kept, ema_decay)

    monkeypatch.setattr(DescentRun, "descend", spy)
    outcome = get_trainer(config.train.trainer)(config.train).fit(task)
    monkeypatch.undo()
    return steps, outcome


def asked_in(steps: Sequence[Step]) -> list[Step]:
    """Those of the queried phase."""
    return [step for step in steps if set(step.rows.tolist()) <= set(ASKED.tolist())]


def softmax(row: Sequence[float], temp: float) -> list[float]:
    powers = [math.exp(v / temp) for v in row]
    return [power / sum(powers) for power in powers]


def slow_distillation(logits: Floats, temp: float, teacher_temp: float) -> float:
    n, total = len(logits) // 2, 0.0
    for i, row in enumerate(logits):
        teacher, student = softmax(logits[(i + n) % (2 * n)], teacher_temp), softmax(row, temp)
        total -= sum(t * math.log(s) for t, s in zip(teacher, student, strict=True))
    return total / len(logits)


def slow_shortfall(logits: Floats, temp: float) -> float:
    shares = [softmax(row, temp) for row in logits]
    mean = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
    return math.log(len(mean)) + math.fsum(share * math.log(share) for share in mean)


def slow_info_nce(projections: Floats, temp: float) -> float:
    z = [[v / math.hypot(*row) for v in row] for row in projections]
    n, total = len(z) // 2, 0.0
    for i, row in enumerate(z):
        powers = [math.exp(sum(a * b for a, b in zip(row, other, strict=True)) / temp) for other in z]
        total -= math.log(powers[(i + n) % (2 * n)] / (sum(powers) - powers[i]))
    return total / len(z)


def slow_unsupervised(output: Output, config: Config) -> float:
    """(1 − λ)·(self-distillation + λₑ·(log K − H(mean p)) + InfoNCE), number by number."""
    train = config.train
    logits, projections = output.logits.double().tolist(), output.projections.double().tolist()
    return (1 - train.sup_weight) * (
        slow_distillation(logits, train.student_temp, train.teacher_temp)
        + train.entropy_weight * slow_shortfall(logits, train.student_temp)
        + slow_info_nce(projections, train.contrast_temp)
    )


def test_answers_learn_the_unsupervised_losses_beside_their_own_where_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = make_blobs()
    for told_too in (False, True):
        config = fast_config(queried_unsupervised=told_too, query_batch_size=3, round_epochs=1)
        task, _ = round_of(config, blobs, tmp_path / str(told_too))
        steps, outcome = steps_of(config, task, monkeypatch)
        queried = asked_in(steps)
        assert sorted(row for step in queried for row in step.rows.tolist()) == sorted(ASKED.tolist())
        for step in queried:  # with one epoch the first mapping is the one that its answers were translated by
            slots = torch.from_numpy(outcome.first.slot_of_class)[step.y_class]
            supervised = float(queried_loss(step.output, step.y_class, slots, config.train))
            beside = slow_unsupervised(step.output, config) if told_too else 0.0
            assert step.loss == pytest.approx(supervised + beside, rel=1e-4)


@pytest.mark.parametrize("n", [2, 7])
def test_the_slow_losses_are_the_original_one_of_rows_that_nobody_labelled(n: int) -> None:
    draw, config = torch.Generator().manual_seed(n), fast_config()
    logits, projections = torch.rand(2 * n, 5, generator=draw) * 2 - 1, torch.randn(2 * n, 4, generator=draw)
    output = Output(torch.zeros(2 * n, 3), logits, projections)
    found = original_loss(output, torch.full((n,), -1), config.train.teacher_temp, config.train)
    assert slow_unsupervised(output, config) == pytest.approx(float(found), rel=1e-5)


def test_the_mean_teacher_teaches_answers_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """μGCD's unsupervised loss is its own: the teacher's prediction of the test view, and no contrast."""
    config = fast_config(trainer="mugcd", queried_unsupervised=True, query_batch_size=len(ASKED), round_epochs=1)
    task, _ = round_of(config, make_blobs(), tmp_path)
    taught: list[Tensor] = []
    teach = mugcd._Run._teach

    def spy(run: Any, rows: IntArray) -> Tensor:
        taught.append(teach(run, rows))
        return taught[-1]

    monkeypatch.setattr(mugcd._Run, "_teach", spy)
    steps, outcome = steps_of(config, task, monkeypatch)
    (step,), teacher = asked_in(steps), taught[-1]
    slots = torch.from_numpy(outcome.first.slot_of_class)[step.y_class]
    nobody = torch.full_like(step.y_class, -1)
    beside = student_loss(step.output.logits, teacher, nobody, config.train.teacher_temp, config.train)
    supervised = queried_loss(step.output, step.y_class, slots, config.train)
    assert step.loss == pytest.approx(float(supervised + beside), rel=1e-5)


def test_rows_accepted_by_page_have_the_unsupervised_losses_in_the_stream_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = make_blobs()
    accepted = np.full(120, -1)
    accepted[[63, 64, 83]] = [3, 3, 4]
    config = fast_config(queried_unsupervised=True, query_batch_size=4, round_epochs=1)
    task, _ = round_of(config, blobs, tmp_path, replace(told(blobs, ASKED), accepted=accepted))
    steps, outcome = steps_of(config, task, monkeypatch)
    by_page = [step for step in steps if set(step.rows.tolist()) <= {63, 64, 83}]
    assert by_page
    for step in by_page:
        slots = torch.from_numpy(outcome.first.slot_of_class)[step.y_class]
        supervised = float(queried_loss(step.output, step.y_class, slots, config.train))
        assert step.loss == pytest.approx(config.train.answers.page_weight * supervised, rel=1e-5)


@pytest.mark.parametrize("name", ["simgcd", "mugcd", "pim", "gcd", "logistic"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_first_mapping_is_that_of_the_model_that_the_round_begins_with(
    name: str, seed: int, tmp_path: Path
) -> None:
    """At its start, as in Algorithm 1; the training is the same as with the mapping of the published code."""
    blobs = make_blobs(seed=seed, per_class=10 if name == "pim" else 20)
    labels = told(blobs, np.arange(len(blobs.truth) // 2, len(blobs.truth), 4))
    outcomes = {}
    for first in ("trained", "start"):
        config = fast_config(trainer=name, first_mapping=first, **AS_IN_THE_PAPER)
        task, base = round_of(config, blobs, tmp_path / first, labels)
        outcomes[first] = get_trainer(name)(config.train).fit(task)
    start, trained = outcomes["start"], outcomes["trained"]
    expected = labelled_mapping(task, config.train, base.fitted, base.last)
    assert start.first.slot_of_class.tolist() == expected.slot_of_class.tolist()
    assert start.first.agreement == expected.agreement
    assert start.last.to_json() == trained.last.to_json()
    assert same(weights(start.fitted), weights(trained.fitted))


def test_the_first_mapping_of_the_published_code_waits_for_an_original_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: dict[str, list[bool]] = {}
    original_phase = TwoPhaseRun._original_phase

    def spy(run: Any, epoch: int, rng: np.random.Generator) -> float:
        known.setdefault(f"{run.config.first_mapping}, round {run.job.round}", []).append(run.first is not None)
        return original_phase(run, epoch, rng)

    monkeypatch.setattr(TwoPhaseRun, "_original_phase", spy)
    for first in ("trained", "start"):
        config = fast_config(first_mapping=first, base_epochs=1, round_epochs=2)
        get_trainer("simgcd")(config.train).fit(round_of(config, make_blobs(), tmp_path / first)[0])
    assert known["trained, round 1"] == [False, True]
    assert known["start, round 1"] == [True, True]
    assert known["trained, round 0"] == known["start, round 0"] == [False], "base training has no mapping to compare"


@two_phase_trainer
def test_a_round_to_the_letter_survives_every_kill(name: str, tmp_path: Path) -> None:
    config = fast_config(trainer=name, queried_unsupervised=True, first_mapping="start")
    blobs = make_blobs()
    base = get_trainer(name)(config.train).fit(job(blobs, tmp_path / "base"))
    rounds = {"labels": told(blobs), "round": 1, "start": base.fitted, "previous": base.last}
    assert_kills_change_nothing(get_trainer(name)(config.train), blobs, tmp_path, **rounds)


@pytest.mark.parametrize("setting", [{"queried_unsupervised": True}, {"first_mapping": "start"}])
def test_each_setting_counts_in_rounds_and_not_in_their_base_nor_where_it_is_off(setting: dict[str, Any]) -> None:
    blobs = make_blobs()
    off, on = (make_config({"protocol": "short", "train": train}) for train in ({}, setting))

    def keys(parent: str | None) -> set[str]:
        return {run_key(blobs.features, blobs.labels, config, 6, parent) for config in (off, on)}

    assert len(keys(None)) == 1
    assert len(keys("parent")) == 2
    assert not set(setting) & settings_record(off)["train"].keys()
    assert setting.items() <= settings_record(on)["train"].items()


def test_the_protocols_choose_text_or_code() -> None:
    letters = {
        protocol: (config.train.queried_unsupervised, config.train.first_mapping, config.max_acc)
        for protocol in ("quick", "short", "paper", "official")
        if (config := make_config({"protocol": protocol}))
    }
    ours = (False, "trained", "fast")
    assert letters["quick"] == letters["short"] == ours
    assert letters["paper"] == (True, "start", "published")
    assert letters["official"] == (False, "trained", "published")
    assert make_config({"protocol": "official"}).train.keep_queried_unlabelled
    assert not make_config({"protocol": "paper"}).train.keep_queried_unlabelled
