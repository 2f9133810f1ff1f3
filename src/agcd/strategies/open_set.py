"""Strategies of open-set active learning, which seek samples of *known* classes: LfOSA, ConAL, MQ-Net.

Their pools hold classes that nobody wants, while here the unknown classes are the goal, so they are baselines that
pull the other way. The AGCD paper compares with them and does not say how they were adapted; each docstring says
what was done here. All their extra encoders and detectors are replaced by the one model and its features.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from agcd.arrays import Float64Array, confidence_and_slot, each_block, lowest, msp_of, unit
from agcd.errors import ConfigError
from agcd.strategies.novelty import first_of_equal_share
from agcd.types import FloatArray, IntArray, PoolView, grows_with, needs

SEMANTIC_STEEPNESS = 100.0
SEMANTIC_THRESHOLD = 0.9
"""Of CCAL's semantic score, tanh(100 (s − 0.9)/2): only the upper tenth of the range of cosines scores above zero."""

HIDDEN = 64
"""Units of MQ-Net's one hidden layer."""
SCORED_AT_ONCE = 1 << 16
"""Items per pass of that net: 32 MB of hidden values."""
BATCH_PAIRS = 16
LEARNING_RATE = 1e-3
"""As published: 32 items, paired, at a rate of 0.001."""


@grows_with("features")
def lfosa(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks the rows most surely of an old slot, judged by a two-part mixture of each slot's activations.

    LfOSA (Ning et al. 2022) trains a detector with one output for all unknown classes. Per predicted known class it
    fits two Gaussians to the largest activations; the score is the posterior of the one with the larger mean, and
    zero for what is predicted unknown. Here the classifier of all slots is the detector and its novel slots are
    "unknown". A slot with a single row has nothing to fit and scores zero; equal scores are asked in random order.

    The activation is the largest logit over the temperature, as it enters the softmax. When the view does not hold
    the classifier, log max p stands in: the same number up to a constant of each row.
    """
    top, y_slot = confidence_and_slot(view.probs, "msp")
    activation = largest_activation(view, top)
    score = np.zeros(len(activation))
    for slot in range(view.n_old):
        members = np.flatnonzero(y_slot == slot)
        if len(members) > 1:
            score[members] = upper_posterior(activation[members], rng)
    return view.rows[np.lexsort((rng.random(len(score)), -score))[:budget]]


def largest_activation(view: PoolView, top: Float64Array) -> Float64Array:
    """The largest logit over the temperature, or log max p (``top``) when the classifier is not known: (n,)."""
    if view.slot_weights is None:
        return np.asarray(np.log(np.maximum(top, np.finfo(np.float64).tiny)))
    weights = view.slot_weights.astype(np.float64)
    biases = 0.0 if view.slot_biases is None else view.slot_biases.astype(np.float64)
    out = np.empty(len(view.rows))

    def work(part: slice) -> None:
        out[part] = (view.features[part].astype(np.float64) @ weights.T + biases).max(1)

    each_block(len(out), weights.shape[0] + weights.shape[1], work)
    return out / view.temperature


def upper_posterior(values: Float64Array, rng: np.random.Generator) -> Float64Array:
    """How likely each number is of the upper of two Gaussians fitted to all: (n,) → (n,), n > 1.

    Ten EM steps at most, a tolerance of 0.01 and 0.0005 added to the variances, as published.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture  # here, because it takes a second to load

    model = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():  # ten steps are the rule, converged or not; equal values are no fault
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = model.fit(values[:, None]).predict_proba(values[:, None])
    return np.asarray(posterior[:, model.means_[:, 0].argmax()])


@grows_with("features")
def conal(view: PoolView, budget: int, rng: np.random.Generator) -> IntArray:
    """Picks an equal share per labelled slot of rows that are close to its labels and yet unlike any of them.

    After CCAL (Du et al. 2021), on which ConAL builds; code of ConAL itself was not found. *Semantic* score: the
    largest cosine to a labelled row, min-max scaled over the pool to s, then tanh(100 (s − 0.9)/2). *Distinctive*
    score: (c₁ − c₂) + cos(A, B) + c₁, where A and B are the two most similar labelled rows of the slot and c₁, c₂
    the cosines to them; min-max scaled, then subtracted from 1. A row belongs to the slot of its most similar
    labelled row, and the slots take turns, highest sum first.

    Ours: one set of features for the two contrastive encoders, no rotations and augmentations; every slot with a
    label is known, novel ones included; the distinctive score is scaled over the rows of its slot; with one label
    in a slot B is A. With nothing labelled the rows are drawn at random.
    """
    if not len(view.labelled_features):
        return view.rows[rng.permutation(len(view.rows))[:budget]]
    cosine, slot, distinctive = nearest_two_labels(view.features, view.labelled_features, view.labelled_slots)
    semantic = np.tanh(SEMANTIC_STEEPNESS * (_min_max(cosine) - SEMANTIC_THRESHOLD) / 2)
    score = semantic + 1
    for known_slot in np.unique(slot):
        members = slot == known_slot
        score[members] -= _min_max(distinctive[members])
    return view.rows[first_of_equal_share(-score, slot, None, budget)]


def nearest_two_labels(
    features: FloatArray, labelled: FloatArray, labelled_slots: IntArray
) -> tuple[Float64Array, IntArray, Float64Array]:
    """The cosine to the most similar labelled row, its slot, and the distinctive score there: three times (n,).

    Blocks of the pool against all labels, so that no array of pool × labels is held.
    """
    known = unit(labelled)
    cosine, distinctive = np.empty(len(features)), np.empty(len(features))
    slot = np.empty(len(features), dtype=np.int64)

    def work(part: slice) -> None:
        cosines = unit(features[part]) @ known.T
        line, first = np.arange(len(cosines)), cosines.argmax(1)
        top = cosines[line, first]
        same_slot = labelled_slots == labelled_slots[first][:, None]
        same_slot[line, first] = False
        cosines[~same_slot] = -np.inf
        second = np.where(same_slot.any(1), cosines.argmax(1), first)
        runner_up = np.where(same_slot.any(1), cosines[line, second], top)
        between = np.einsum("ij,ij->i", known[first], known[second])
        cosine[part], slot[part], distinctive[part] = top, labelled_slots[first], (top - runner_up) + between + top

    each_block(len(features), max(len(known) // 16, features.shape[1]), work)
    return cosine, slot, distinctive


def _min_max(values: Float64Array) -> Float64Array:
    """Scaled to [0, 1]; equal values to 0."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


@needs("labelled_probs")
@grows_with("features")
def mq_net(view: PoolView, budget: int, rng: np.random.Generator, *, steps: int = 10_000) -> IntArray:
    """Picks rows both unsure and like old labels, in a balance learned from the answers of the last query.

    MQ-Net (Park et al. 2022). Informativeness I = 1 − max p; purity P = the largest cosine to a labelled row of an
    old slot (theirs: in a contrastive encoder of its own). The first query takes the largest I + exp(z(P)), z being
    the standard score. Later ones take the largest output of a small net, increasing in exp(z(I)) and exp(z(P)),
    that has learned to rank the last query by the loss it had when asked, counted as zero for novel classes.

    As published, the loss and I of the last query are those of the model that asked (``labelled_probs``), and its
    scores are standardised among themselves. P is measured now, to labels of earlier rounds only. Without these
    fields, or when all those losses are equal (nothing to rank), the rule of the first query is used.
    """
    if steps < 1:
        raise ConfigError(f"steps is {steps}; it must be at least 1.")
    informative = 1 - msp_of(view.probs)
    old = view.labelled_slots < view.n_old
    purity = largest_cosine(view.features, view.labelled_features[old])
    lesson = last_query(view)
    if lesson is None:
        score = informative + _exp_standard(purity)
    else:
        net = train_monotone_net(*lesson, rng, steps=steps)
        score = net.score(np.stack([_exp_standard(informative), _exp_standard(purity)], axis=1))
    return view.rows[lowest(-score, budget)]


def last_query(view: PoolView) -> tuple[Float64Array, Float64Array] | None:
    """The net's inputs (m, 2) for the rows of the last query and their losses (m,); None when there is no lesson."""
    rounds, probs = view.labelled_rounds, view.labelled_probs
    if rounds is None or probs is None or not (rounds > 0).any():
        return None
    last, old = rounds == rounds.max(), view.labelled_slots < view.n_old
    right = probs[last, view.labelled_slots[last]].astype(np.float64)
    losses = np.where(old[last], -np.log(np.maximum(right, np.finfo(np.float64).tiny)), 0.0)
    if losses.min() == losses.max():
        return None
    purity = largest_cosine(view.labelled_features[last], view.labelled_features[old & ~last])
    return np.stack([_exp_standard(1 - msp_of(probs[last])), _exp_standard(purity)], axis=1), losses


def largest_cosine(features: FloatArray, labelled: FloatArray) -> Float64Array:
    """The cosine of each item to the most similar labelled one: (n, d), (m, d) → (n,); 0 when m = 0."""
    out = np.zeros(len(features))
    if len(labelled):
        known = unit(labelled)

        def work(part: slice) -> None:
            out[part] = (unit(features[part]) @ known.T).max(1)

        each_block(len(features), max(len(known) // 16, features.shape[1]), work)
    return out


def _exp_standard(values: Float64Array) -> Float64Array:
    """exp((v − mean)/std) with the population's std; 1 where all are equal, and never an overflow."""
    spread = values.std()
    standard = (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))
    return np.asarray(np.exp(np.minimum(standard, 500)))


@dataclass(frozen=True)
class MonotoneNet:
    """The query net of MQ-Net, whose output never falls when an input rises.

    score = relu(w₂)ᵀ sigmoid(relu(W₁)ᵀ x + b₁); a constant added to every score would change no order.
    """

    w1: Float64Array
    """(inputs, hidden)"""
    b1: Float64Array
    """(hidden,)"""
    w2: Float64Array
    """(hidden,)"""

    def score(self, x: Float64Array) -> Float64Array:
        """(n, inputs) → (n,), so many items at a time that the hidden values stay small."""
        w1, w2 = np.maximum(self.w1, 0), np.maximum(self.w2, 0)
        parts = [expit(x[i : i + SCORED_AT_ONCE] @ w1 + self.b1) @ w2 for i in range(0, len(x), SCORED_AT_ONCE)]
        return np.concatenate(parts)


def train_monotone_net(
    x: Float64Array, losses: Float64Array, rng: np.random.Generator, *, steps: int = 10_000
) -> MonotoneNet:
    """A net that ranks items (m, inputs) as their losses (m,) do.

    As published (Park et al. 2022): weights start uniform in [0, 1); plain SGD at 0.001, at a tenth of it from half
    the steps on; 10,000 steps of 32 items, paired. Ours: pairs are drawn with replacement; a pair of equal losses
    is left out (the published code ranks its second item higher).
    """
    net = MonotoneNet(rng.random((x.shape[1], HIDDEN)), rng.random(HIDDEN), rng.random(HIDDEN))
    for step in range(steps):
        first, second = rng.integers(len(x), size=(2, BATCH_PAIRS))
        _, gradient = ranking_loss(net, x[first], x[second], np.sign(losses[first] - losses[second]))
        rate = LEARNING_RATE * (0.1 if 2 * step >= steps else 1.0)
        net = MonotoneNet(net.w1 - rate * gradient.w1, net.b1 - rate * gradient.b1, net.w2 - rate * gradient.w2)
    return net


def ranking_loss(
    net: MonotoneNet, first: Float64Array, second: Float64Array, sign: Float64Array
) -> tuple[float, MonotoneNet]:
    """The mean over pairs of max(0, 1 − sign · (score₁ − score₂)), zero for pairs without a sign, and its gradient.

    Parameters
    ----------
    first, second : shape (pairs, inputs)
    sign : shape (pairs,), 1 where the first should score higher, −1 where the second, 0 where neither
    """
    x = np.concatenate([first, second])
    w1, w2 = np.maximum(net.w1, 0), np.maximum(net.w2, 0)
    hidden = expit(x @ w1 + net.b1)
    score = hidden @ w2
    slack = np.where(sign != 0, 1 - sign * (score[: len(first)] - score[len(first) :]), 0.0)
    on_first = np.where(slack > 0, -sign, 0.0) / len(sign)
    on_score = np.concatenate([on_first, -on_first])
    on_hidden = on_score[:, None] * w2 * hidden * (1 - hidden)
    gradient = MonotoneNet((x.T @ on_hidden) * (net.w1 > 0), on_hidden.sum(0), (on_score @ hidden) * (net.w2 > 0))
    return float(np.maximum(slack, 0).mean()), gradient
