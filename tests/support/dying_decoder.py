"""Stands in for ``load_views`` in worker processes, so it must load nothing heavy."""

from __future__ import annotations

import os
import signal

import numpy as np
from numpy.typing import NDArray

from agcd.features.views import ViewJob, ViewSpec


def die_on_bad_names(job: ViewJob, spec: ViewSpec) -> NDArray[np.uint8]:
    """Crashes on files called bad, as a C library might; others give their key as pixels."""
    if "bad" in job.path:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.full((1, 2, 2, 3), int(job.key), np.uint8)
