"""Which slot stands for which class, and whether that is stable.

A person names classes, a head numbers slots, and the Hungarian assignment on the labelled rows joins the two:
``slot_of_class[c]`` is the slot of class c, and no two classes share one. All counting is in whole numbers, so ties
are exact and are settled by rule (the previous mapping first), never by rounding. Large tables are kept sparse
(``assignment``), so that 10⁴ classes cost seconds and not gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array

from agcd.assignment import DENSE_CELLS, heaviest_matching, sparse_contingency
from agcd.types import BoolArray, IntArray, LabelMapping, Phase


def contingency(y_class: IntArray, y_slot: IntArray, n_classes: int, n_slots: int) -> IntArray:
    """How many rows of each class were predicted as each slot: (n,), (n,) → (n_classes, n_slots)."""
    check_pairs(y_class, y_slot, n_classes, n_slots)
    pairs = np.asarray(y_class, dtype=np.int64) * n_slots + np.asarray(y_slot, dtype=np.int64)
    return np.bincount(pairs, minlength=n_classes * n_slots).reshape(n_classes, n_slots)


def check_pairs(y_class: IntArray, y_slot: IntArray, n_classes: int, n_slots: int) -> None:
    """Refuse rows (n,), (n,) without a class or slot in range, and unequal numbers of both."""
    _check_range("y_class", y_class, n_classes)
    _check_range("y_slot", y_slot, n_slots)
    if len(y_class) != len(y_slot):
        raise ValueError(f"{len(y_class)} classes were given for {len(y_slot)} slots; each row has one of both.")


def _check_range(name: str, values: IntArray, limit: int) -> None:
    if len(values) and not 0 <= values.min() <= values.max() < limit:
        raise ValueError(f"{name} runs from {values.min()} to {values.max()}; allowed is 0 to {limit - 1}.")


def map_labels(
    y_class: IntArray,
    y_slot: IntArray,
    n_classes: int,
    n_slots: int,
    *,
    n_old: int,
    pin_old: bool = True,
    previous: LabelMapping | None = None,
    model_id: str = "",
) -> LabelMapping:
    """The assignment of slots to classes under which most labelled rows are predicted as their class.

    Parameters
    ----------
    y_class, y_slot : shape (n_labelled,)
        What the person said and what the model predicts.
    n_classes, n_slots : int
        Classes known so far and outputs of the head; either may be larger. Classes for which no slot is left get
        slots n_slots, n_slots + 1, …: the head must grow to ``slots_needed``.
    n_old : int
        The first ``n_old`` classes are old. With ``pin_old`` old class c has slot c, whatever is predicted.
    previous : LabelMapping, optional
        Settles ties. It may know fewer classes than there are now.

    Notes
    -----
    A class without labelled rows keeps its previous slot if that is free, else gets the lowest free one, so that
    the solver's whims cannot look like instability. ``agreement`` is 0 when there are no labelled rows.
    """
    check_pairs(y_class, y_slot, n_classes, n_slots)
    observed = np.bincount(y_class, minlength=n_classes) > 0
    wish = _wishes(n_classes, n_slots, n_old, previous)
    slot_of_class = np.full(n_classes, -1, dtype=np.int64)
    if pin_old:
        slot_of_class[:n_old] = np.arange(min(n_old, n_classes))
    free_class = np.flatnonzero(observed & (slot_of_class < 0))
    free_slot = np.setdiff1d(np.arange(n_slots), slot_of_class)
    unseen_wish = wish[~observed & (slot_of_class < 0)]
    if n_classes * n_slots <= DENSE_CELLS:
        counts = contingency(y_class, y_slot, n_classes, n_slots)[np.ix_(free_class, free_slot)]
        slot_of_class[free_class] = _assigned(counts, wish[free_class], free_slot, unseen_wish)
    else:
        few = sparse_contingency(y_class, y_slot, n_classes, n_slots)[free_class][:, free_slot]
        slot_of_class[free_class] = _assigned_sparsely(few, wish[free_class], free_slot, unseen_wish)
    _place_the_rest(slot_of_class, wish, observed)
    hits = slot_of_class[y_class] == y_slot
    return LabelMapping(slot_of_class, observed, float(hits.mean()) if len(hits) else 0.0, model_id)


def _wishes(n_classes: int, n_slots: int, n_old: int, previous: LabelMapping | None) -> IntArray:
    """The slot each class would keep: its previous one, else its own number if it is old, else none (−1)."""
    wish = np.where(np.arange(n_classes) < n_old, np.arange(n_classes), -1)
    if previous is not None:
        n_before = min(n_classes, len(previous.slot_of_class))
        wish[:n_before] = previous.slot_of_class[:n_before]
    return np.where(wish < n_slots, wish, -1)


def _assigned(counts: IntArray, wish: IntArray, slots: IntArray, unseen_wish: IntArray) -> IntArray:
    """The slot of each class (n_classes,) out of ``slots`` (n_slots,), −1 for those left over, under ``_weights``."""
    picked, column = linear_sum_assignment(_weights(counts, wish, slots, unseen_wish), maximize=True)
    slot_of_class = np.full(len(counts), -1, dtype=np.int64)
    slot_of_class[picked] = slots[column]
    return slot_of_class


def _assigned_sparsely(counts: csr_array, wish: IntArray, slots: IntArray, unseen_wish: IntArray) -> IntArray:
    """As ``_assigned`` and equal to it in all three digits, with work for the pairs that have hits or a wish alone.

    Hits and kept slots live on those pairs. All other pairs serve to place the classes left over, and every one of
    them finds an unclaimed slot while there is one; so the third digit is at its best when the fewest claimed slots
    go to pairs with hits or a wish, and there a claimed slot costs one.
    """
    base = len(wish) + 1
    claimed = np.isin(slots, unseen_wish)
    keeps = np.flatnonzero(np.isin(wish, slots))
    kept = coo_array((np.ones(len(keeps), np.int64), (keeps, np.searchsorted(slots, wish[keeps]))), counts.shape)
    weights = (counts * base**2 + kept.tocsr() * base).tocsr()
    weights.data -= claimed[weights.indices]
    column = heaviest_matching(weights)
    left, unused = np.flatnonzero(column < 0), np.setdiff1d(np.arange(len(slots)), column)
    unused = unused[np.argsort(claimed[unused], kind="stable")]
    n_placed = min(len(left), len(unused))
    column[left[:n_placed]] = unused[:n_placed]
    slot_of_class = np.full(len(wish), -1, dtype=np.int64)
    slot_of_class[column >= 0] = slots[column[column >= 0]]
    return slot_of_class


def _weights(counts: IntArray, wish: IntArray, slots: IntArray, unseen_wish: IntArray) -> IntArray:
    """Three wishes in the digits of one whole number: hits, then kept slots, then slots nobody else waits for.

    A lower digit sums to less than one unit of the next, so it only ever settles ties. The solver computes in
    float64, which is exact here: rows × (classes + 1)² stays below 2⁵³ for a million rows and 90,000 classes.
    """
    base = len(counts) + 1
    kept = wish[:, None] == slots[None, :]
    unclaimed = ~np.isin(slots, unseen_wish)
    return np.asarray(counts * base**2 + kept * base + unclaimed, dtype=np.int64)


def _place_the_rest(slot_of_class: IntArray, wish: IntArray, observed: BoolArray) -> None:
    """Slots for the classes that the assignment left out, in place: wishes first, then the lowest free slot."""
    taken = set(slot_of_class[slot_of_class >= 0].tolist())
    left = [c for seen in (True, False) for c in np.flatnonzero((slot_of_class < 0) & (observed == seen)).tolist()]
    for c in left:
        if wish[c] >= 0 and int(wish[c]) not in taken:
            slot_of_class[c] = wish[c]
            taken.add(int(wish[c]))
    lowest = 0
    for c in left:
        if slot_of_class[c] < 0:
            while lowest in taken:
                lowest += 1
            slot_of_class[c] = lowest
            taken.add(lowest)


def slots_needed(mapping: LabelMapping) -> int:
    """How many outputs the head must have for every class to have its slot."""
    return int(mapping.slot_of_class.max(initial=-1)) + 1


def mismatches(first: LabelMapping, last: LabelMapping) -> int:
    """How many classes of ``last`` have another slot than in ``first``.

    A class named in between had no slot before: it counts as moved if it has labelled rows, and not otherwise.
    """
    before = np.full(len(last.slot_of_class), -1, dtype=np.int64)
    n_common = min(len(before), len(first.slot_of_class))
    before[:n_common] = first.slot_of_class[:n_common]
    return int(((before != last.slot_of_class) & ((before >= 0) | last.observed)).sum())


def diff(first: LabelMapping, last: LabelMapping, n_slots: int) -> float:
    """The share of classes that moved, out of all there may be (the paper's diff: mismatches / K)."""
    return mismatches(first, last) / max(n_slots, len(last.slot_of_class), 1)


def free_assignment(y_class: IntArray, y_slot: IntArray, n_slots: int) -> IntArray:
    """The paper's mapping: the slot of each of as many classes, named or not (n_slots,), by one assignment of all.

    Nothing is pinned and no tie is kept: classes without labelled rows get what the solver leaves them, and may get
    something else next time. The table is laid out as in the published code, so that its whims are the same.
    """
    check_pairs(y_class, y_slot, n_slots, n_slots)
    slot_of_class = np.empty(n_slots, dtype=np.int64)
    if n_slots**2 <= DENSE_CELLS:
        counts = contingency(y_slot, y_class, n_slots, n_slots)
        slots, classes = linear_sum_assignment(counts.max() - counts)
        slot_of_class[classes] = slots
        return slot_of_class
    slot_of_class[:] = heaviest_matching(sparse_contingency(y_class, y_slot, n_slots, n_slots))
    left = slot_of_class < 0
    slot_of_class[left] = np.setdiff1d(np.arange(n_slots), slot_of_class)
    return slot_of_class


def literal_diff(y_class: IntArray, y_slot_before: IntArray, y_slot_after: IntArray, n_slots: int) -> float:
    """The paper's diff taken at its word: the share of all ``n_slots`` entries of the free assignment that changed.

    ``y_class`` (n_labelled,) is what the person said, the others what the model said before a round and after it.
    """
    before, after = (free_assignment(y_class, y_slot, n_slots) for y_slot in (y_slot_before, y_slot_after))
    return float((before != after).mean())


def is_stable(diff: float, threshold: float = 0.1) -> bool:
    """Whether ``diff`` is strictly below ``threshold``; 1 − 0.9 = 0.09999999999999998 is not below 0.1."""
    return diff < threshold - 1e-9


def next_phase(
    diffs: Iterable[float],
    *,
    threshold: float = 0.1,
    switch_round: int | None = None,
    round: int,
    n_rounds: int,
) -> Phase:
    """Whether to ask, in ``round`` (counted from 1), about what the model is sure of or about what it is not.

    ``diffs`` says how much the mapping changed in each earlier round. Once a round ends with a stable mapping, all
    later ones are informative. A single round is informative; ``switch_round`` overrules everything.
    """
    if switch_round is not None:
        return "informative" if round >= switch_round else "confident"
    stable = any(is_stable(diff, threshold) for diff in islice(diffs, round - 1))
    return "informative" if stable or n_rounds == 1 else "confident"


def consistency(a: LabelMapping, b: LabelMapping) -> float:
    """The share of classes known to both that have the same slot in both; NaN when there are none."""
    n = min(len(a.slot_of_class), len(b.slot_of_class))
    return float((a.slot_of_class[:n] == b.slot_of_class[:n]).mean()) if n else float("nan")


def describe_change(before: Mapping[str, int], after: Mapping[str, int], *, noun: str = "slot") -> list[str]:
    """What changed between two tables of class name → slot, one sentence per class; ``noun`` names a slot."""
    sentences = []
    for name, slot in after.items():
        if name not in before:
            sentences.append(f"class {name!r} is new and has {noun} {slot}")
        elif before[name] != slot:
            sentences.append(f"class {name!r} moved from {noun} {before[name]} to {noun} {slot}")
    gone = [name for name in before if name not in after]
    return [*sentences, *(f"class {name!r} has no {noun} any more" for name in gone)]


def slot_of_name(mapping: LabelMapping, class_names: Sequence[str]) -> dict[str, int]:
    """The slot of every class of ``mapping`` by its name; ``class_names`` may know more classes."""
    return dict(zip(class_names, mapping.slot_of_class.tolist(), strict=False))
