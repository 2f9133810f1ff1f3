"""Active Generalized Category Discovery: find the classes nobody has named yet."""

import os
from typing import TYPE_CHECKING, Any

# OpenMP threads that spin while they wait take the cores from each other as soon as the machine has other work: a
# training step on two busy cores then takes many times as long. Threads that sleep at once wake too late for the short
# products of a step. So they spin for some ten microseconds and then sleep. It counts only if set before torch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

if TYPE_CHECKING:
    from agcd.api import ActiveDiscovery as ActiveDiscovery
    from agcd.lab.experiment import run_experiment as run_experiment
    from agcd.lab.experiment import summarise as summarise

__version__ = "0.2.0"
__all__ = ["ActiveDiscovery", "__version__", "run_experiment", "summarise"]


def __getattr__(name: str) -> Any:
    """Load what needs torch only when it is wanted: that takes seconds."""
    if name == "ActiveDiscovery":
        from agcd.api import ActiveDiscovery

        return ActiveDiscovery
    if name in ("run_experiment", "summarise"):
        from agcd.lab import experiment

        return getattr(experiment, name)
    raise AttributeError(f"module 'agcd' has no attribute {name!r}")
