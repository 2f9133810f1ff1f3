"""The four SimGCD losses as functions of tensors.

Views come stacked: the first half of a batch is view 1, the second half view 2 of the same rows.
Wen et al., Parametric Classification for Generalized Category Discovery (ICCV 2023).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from agcd.features.products import linear

# A projection is short at the start (weights of 0.02); only one that is all but zero is left as it is, since the
# gradient of normalising grows as one over the length.
_SHORTEST = 1e-4

# The slope of the entropy at a share of zero, which a slot that is not used has, is infinite.
_SMALLEST_SHARE = 1e-30


def labelled_of(y_class: Tensor, labelled: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Where the labelled rows are in both views (2m,), and their classes (m,).

    Parameters
    ----------
    y_class : (B,), −1 for unlabelled rows.
    labelled : (m,) where it is not. None looks for itself, for which whoever computes must wait for the device.
    """
    if labelled is None:
        labelled = (y_class >= 0).nonzero().flatten()
    return torch.cat([labelled, labelled + len(y_class)]), y_class[labelled]


def self_distillation(logits: Tensor, student_temp: float, teacher_temp: float) -> Tensor:
    """Each view learns the sharpened prediction of the other; the teacher side carries no gradient.

    Parameters
    ----------
    logits : (2B, K) cosines, view 1 then view 2.
    """
    log_student = F.log_softmax(logits / student_temp, dim=1)
    teacher = F.softmax(logits.detach() / teacher_temp, dim=1)
    other = teacher.roll(len(logits) // 2, dims=0)
    return -(other * log_student).sum(1).mean()


def entropy_shortfall(logits: Tensor, student_temp: float) -> Tensor:
    """log K − H(mean prediction): zero when the batch uses all slots equally.

    Parameters
    ----------
    logits : (n, K) cosines.
    """
    mean = F.softmax(logits / student_temp, dim=1).mean(0)
    entropy: Tensor = torch.special.entr(mean.clamp_min(_SMALLEST_SHARE)).sum()
    return math.log(logits.shape[1]) - entropy


def supervised(logits: Tensor, slots: Tensor, student_temp: float) -> Tensor:
    """Cross-entropy to the slots of labelled rows; zero when there are none.

    Parameters
    ----------
    logits : (2n, K) cosines of both views.
    slots : (n,) the slot of each row.
    """
    if len(slots) == 0:
        return logits.sum() * 0
    return F.cross_entropy(logits / student_temp, slots.repeat(2))


def weighted_supervised(logits: Tensor, slots: Tensor, weights: Tensor, student_temp: float) -> Tensor:
    """Cross-entropy to the slots, each row multiplied by its weight, divided by the number of all rows.

    Parameters
    ----------
    logits : (2n, K) cosines of both views.
    slots : (n,) the slot of each row; of rows with weight 0 any.
    weights : (n,) between 0 and 1.
    """
    if len(slots) == 0:
        return logits.sum() * 0
    each = F.cross_entropy(logits / student_temp, slots.repeat(2), reduction="none")
    return (weights.repeat(2) * each).mean()


def info_nce(projections: Tensor, temp: float) -> Tensor:
    """Each view must find the other view of its row among all 2B − 1 others.

    Parameters
    ----------
    projections : (2B, p), view 1 then view 2, not normalised.
    """
    z = F.normalize(projections, dim=1, eps=_SHORTEST)
    similarity = (linear(z, z) / temp).fill_diagonal_(-torch.inf)
    n = len(z)
    partner = torch.arange(n, device=z.device).roll(n // 2)
    return F.cross_entropy(similarity, partner)


def sup_con(projections: Tensor, y_class: Tensor, temp: float) -> Tensor:
    """Supervised contrast: rows of one class attract, in both views; zero when there are no rows.

    Parameters
    ----------
    projections : (2n, p), view 1 then view 2 of labelled rows, not normalised.
    y_class : (n,) the class of each row.
    """
    if len(y_class) == 0:
        return projections.sum() * 0
    z, y = F.normalize(projections, dim=1, eps=_SHORTEST), y_class.repeat(2)
    similarity = (linear(z, z) / temp).fill_diagonal_(-torch.inf)
    log_prob = similarity.log_softmax(1)
    positive = (y[:, None] == y[None, :]).fill_diagonal_(False)
    # Every row has its own other view as a positive, so the count is never zero.
    return -(log_prob.where(positive, 0.0).sum(1) / positive.sum(1)).mean()
