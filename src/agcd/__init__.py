"""Active Generalized Category Discovery: find the classes nobody has named yet."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agcd.api import ActiveDiscovery as ActiveDiscovery

__version__ = "0.1.0"
__all__ = ["ActiveDiscovery", "__version__"]


def __getattr__(name: str) -> Any:
    """Load the estimator only when it is wanted: torch takes seconds."""
    if name == "ActiveDiscovery":
        from agcd.api import ActiveDiscovery

        return ActiveDiscovery
    raise AttributeError(f"module 'agcd' has no attribute {name!r}")
