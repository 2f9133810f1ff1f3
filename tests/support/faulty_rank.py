"""A training process with a fault: ``FAULT=… torchrun … -m support.faulty_rank RUN_DIR/torchrun``."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch.distributed as dist

from agcd.engine import rank
from agcd.training import loop

ABORT_AT_THE_END = "abort at the end"
"""Every process aborts when it should close its connections; the outcome is written by then."""
STOP_AFTER_EPOCH = 5
"""Rank 0 goes no further than this epoch until somebody ends it: however slow a test is, the run is not finished."""


def record_and_stop(resumable: Any, run_dir: Any, line: dict[str, Any], echo: Any) -> None:
    record_epoch(resumable, run_dir, line, echo)
    while line["epoch"] == STOP_AFTER_EPOCH:
        time.sleep(0.1)


if __name__ == "__main__":
    if os.environ["FAULT"] == ABORT_AT_THE_END:
        dist.destroy_process_group = os.abort  # type: ignore[assignment]
    else:
        record_epoch, loop._record_epoch = loop._record_epoch, record_and_stop
    rank.main(sys.argv[1:])
