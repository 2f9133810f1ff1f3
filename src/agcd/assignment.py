"""Assignment of slots to classes when only few of the pairs ever occur: sparse counts, sparse matching.

A table of 10⁴ × 10⁴ cells takes 800 MB before anything is solved, though a million rows fill at most a hundredth of
it. Up to ``DENSE_CELLS`` cells ``mapping`` and ``metrics`` keep the whole table; beyond they come here. Both ways
agree in everything their weights say; among assignments of equal weight each solver has its own choice.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, hstack
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from agcd.types import IntArray

DENSE_CELLS = 1_000_000
"""Tables of at most so many cells (1,000 × 1,000) are kept whole; another limit may settle ties of stored runs anew."""


def sparse_contingency(y_class: IntArray, y_slot: IntArray, n_classes: int, n_slots: int) -> csr_array:
    """How many rows of each class were predicted as each slot, (n_classes, n_slots); its memory grows with the rows."""
    ones = np.ones(len(y_class), dtype=np.int64)
    return coo_array((ones, (y_class, y_slot)), shape=(n_classes, n_slots)).tocsr()


def heaviest_matching(weights: csr_array) -> IntArray:
    """The slot of each class (n_classes,) in a matching of the greatest total weight; −1 where a class has none.

    Parameters
    ----------
    weights : shape (n_classes, n_slots), whole numbers
        Only stored positive weights are pairs that may be matched. The solver computes in float64, so the greatest
        total must stay below 2⁵³.
    """
    n_classes, n_slots = weights.shape
    if weights.nnz == 0:
        return np.full(n_classes, -1, dtype=np.int64)
    # the solver minimises, takes no zeros and matches every class: each gets a column of its own to fall back on
    ceiling = float(weights.max()) + 1.0
    cost = csr_array((ceiling - weights.data, weights.indices, weights.indptr), shape=weights.shape)
    alone = diags_array(np.full(n_classes, ceiling))
    _, column = min_weight_full_bipartite_matching(hstack([cost, alone], format="csr"))
    return np.where(column < n_slots, column, -1).astype(np.int64)
