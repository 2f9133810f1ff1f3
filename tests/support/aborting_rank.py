"""A training process that aborts at its tear-down: ``torchrun … -m support.aborting_rank RUN_DIR/torchrun``."""

from __future__ import annotations

import os
import sys

import torch.distributed as dist

from agcd.engine import rank

if __name__ == "__main__":
    dist.destroy_process_group = os.abort  # type: ignore[assignment]
    rank.main(sys.argv[1:])
