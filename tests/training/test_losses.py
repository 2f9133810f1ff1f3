"""Each loss against a slow, obvious twin that loops over rows."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from agcd.config import TrainConfig
from agcd.training import losses
from agcd.training.heads import UNUSED_LOGIT, Output
from agcd.training.runs import queried_loss
from agcd.training.simgcd import original_loss


@pytest.fixture
def batch() -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    logits = torch.rand(12, 5, generator=draw) * 2 - 1
    projections = torch.randn(12, 7, generator=draw)
    y_class = torch.tensor([0, 1, 0, 2, 1, 0])
    return logits, projections, y_class


def softmax(values: list[float], temp: float) -> list[float]:
    powers = [math.exp(v / temp) for v in values]
    return [p / sum(powers) for p in powers]


def unit_rows(projections: Tensor) -> list[Tensor]:
    return [row / row.norm() for row in projections.double()]


def test_self_distillation_is_cross_entropy_to_the_other_view(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, _, _ = batch
    rows, total = logits.double().tolist(), 0.0
    for i, row in enumerate(rows):
        teacher = softmax(rows[(i + 6) % 12], 0.05)
        student = softmax(row, 0.1)
        total -= sum(t * math.log(s) for t, s in zip(teacher, student, strict=True))
    assert float(losses.self_distillation(logits, 0.1, 0.05)) == pytest.approx(total / 12, rel=1e-4)


def test_self_distillation_sends_no_gradient_through_the_teacher() -> None:
    logits = torch.tensor([[0.9, -0.9], [0.1, 0.2]], requires_grad=True)
    losses.self_distillation(logits, 0.1, 0.04).backward()  # type: ignore[no-untyped-call]
    student = (logits.detach() / 0.1).softmax(1)
    teacher = (logits.detach() / 0.04).softmax(1).flip(0)
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, (student - teacher) / 0.1 / 2)


def test_entropy_shortfall_is_zero_only_when_slots_are_used_equally() -> None:
    assert float(losses.entropy_shortfall(torch.eye(4), 0.01)) == pytest.approx(0, abs=1e-6)
    one_slot = torch.tensor([[1.0, -1.0, -1.0, -1.0]] * 3)
    assert float(losses.entropy_shortfall(one_slot, 0.01)) == pytest.approx(math.log(4), abs=1e-5)


def test_a_slot_that_is_not_used_leaves_every_gradient_finite_and_that_of_the_others_alone() -> None:
    used = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).clamp(-1, 1).requires_grad_()
    wider = torch.cat([used, torch.full((8, 1), UNUSED_LOGIT)], 1)
    gradients = []
    for logits in (used, wider):
        loss = losses.entropy_shortfall(logits, 0.1) + losses.self_distillation(logits, 0.1, 0.04)
        gradients.append(torch.autograd.grad(loss, used)[0])
    assert torch.isfinite(gradients[1]).all()
    torch.testing.assert_close(gradients[0], gradients[1])


def test_info_nce_finds_the_other_view_among_all_others(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    _, projections, _ = batch
    z, total = unit_rows(projections), 0.0
    for i in range(12):
        others = [math.exp(float(z[i] @ z[j]) / 0.5) for j in range(12) if j != i]
        total -= math.log(math.exp(float(z[i] @ z[(i + 6) % 12]) / 0.5) / sum(others))
    assert float(losses.info_nce(projections, 0.5)) == pytest.approx(total / 12, rel=1e-5)


def test_sup_con_is_the_mean_over_positives(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    _, projections, y_class = batch
    z, y, total = unit_rows(projections), y_class.tolist() * 2, 0.0
    for i in range(12):
        denominator = sum(math.exp(float(z[i] @ z[j]) / 0.07) for j in range(12) if j != i)
        positives = [j for j in range(12) if j != i and y[j] == y[i]]
        total -= sum(float(z[i] @ z[j]) / 0.07 - math.log(denominator) for j in positives) / len(positives)
    assert float(losses.sup_con(projections, y_class, 0.07)) == pytest.approx(total / 12, rel=1e-4)


def test_supervised_is_cross_entropy_of_both_views(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, _, slots = batch
    rows, y = logits.double().tolist(), slots.tolist() * 2
    total = -sum(math.log(softmax(row, 0.1)[slot]) for row, slot in zip(rows, y, strict=True))
    assert float(losses.supervised(logits, slots, 0.1)) == pytest.approx(total / 12, rel=1e-5)


def test_losses_without_labelled_rows_are_zero_and_have_a_gradient() -> None:
    empty = torch.empty(0, 3, requires_grad=True)
    nobody = torch.empty(0, dtype=torch.int64)
    for loss in (losses.supervised(empty, nobody, 0.1), losses.sup_con(empty, nobody, 0.07)):
        assert float(loss.detach()) == 0
        loss.backward()  # type: ignore[no-untyped-call]


def test_original_loss_weighs_the_terms_as_simgcd_does(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, projections, _ = batch
    config = TrainConfig(entropy_weight=3.0)
    y_class = torch.tensor([0, -1, 1, -1, -1, 0])
    rows = [0, 2, 5, 6, 8, 11]
    y = torch.tensor([0, 1, 0])
    expected = 0.65 * (
        losses.self_distillation(logits, 0.1, 0.04)
        + 3.0 * losses.entropy_shortfall(logits, 0.1)
        + losses.info_nce(projections, 1.0)
    ) + 0.35 * (losses.supervised(logits[rows], y, 0.1) + losses.sup_con(projections[rows], y, 0.07))
    output = Output(projections, logits, projections)
    torch.testing.assert_close(original_loss(output, y_class, 0.04, config), expected)


def test_queried_loss_classifies_by_slot_and_contrasts_by_class(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, projections, y_class = batch
    slots = torch.tensor([3, 4, 3, 0, 4, 3])
    expected = 0.35 * (losses.supervised(logits, slots, 0.1) + losses.sup_con(projections, y_class, 0.07))
    output = Output(projections, logits, projections)
    torch.testing.assert_close(queried_loss(output, y_class, slots, TrainConfig()), expected)
