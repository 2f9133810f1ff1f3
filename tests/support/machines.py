"""A machine whose speeds are known."""

from __future__ import annotations

from dataclasses import replace

from agcd.engine.costs import (
    Extraction,
    Line,
    Machine,
    Training,
)

TAIL = Training(
    item_bytes=1000,
    step=Line(0.5, 0.001),
    queried_step=Line(0.1, 0.0),
    predict=Line(0.01, 0.0001),
    epoch_s=2.0,
    model_bytes=Line(5e6, 1e4),
)


POOLED = replace(TAIL, item_bytes=100, step=Line(0.05, 0.001), predict=Line(0.001, 0.0001))


MACHINE = Machine(
    memory_bytes=16 * 10**9,
    disk_bytes_per_s=1e9,
    process_bytes=500_000_000,
    dim=64,
    kmeans_s=1e-9,
    select_s=1e-8,
    tail=TAIL,
    pooled=POOLED,
    extraction=Extraction(start_s=3.0, decode_s=0.01, crop_s=0.02),
)
