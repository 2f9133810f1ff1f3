"""What the pretrained network makes of rows, before anything is trained."""

from __future__ import annotations

from agcd.arrays import unit
from agcd.features.rows import RowFeatures
from agcd.training.fitted import embed_rows
from agcd.types import FloatArray, IntArray


def frozen_features(features: RowFeatures, rows: IntArray) -> FloatArray:
    """Features of the test view of ``rows``, centred, at unit length: (n, d)."""
    x = embed_rows(features.new_tail().eval(), features, rows).numpy()
    return unit(x - x.mean(0))
