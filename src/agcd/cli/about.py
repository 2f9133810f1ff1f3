"""Commands about agcd itself."""

from __future__ import annotations

from agcd import __version__


def strategies() -> None:
    """List the query strategies, each with the first line of its documentation."""
    from agcd.strategies import list_strategies

    listed = list_strategies()
    width = max(map(len, listed))
    for name, line in listed.items():
        print(f"{name:<{width}}  {line}")


def version() -> None:
    """Print the version."""
    print(__version__)
