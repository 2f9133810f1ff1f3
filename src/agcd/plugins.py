"""Code from outside: strategies and trainers that are somebody else's, found by name and known by their source.

A name is one of agcd's own, one that an installed package announces in an entry point group, or
``package.module:name``. agcd's own come first, so that no package can take a name from them. Keys of results hold a
digest of code from outside (``agcd.provenance``), since a name alone does not say which version of it ran.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from agcd.errors import ConfigError, did_you_mean
from agcd.provenance import source_digest

T = TypeVar("T", bound=Callable[..., Any])


def place_of(given: Callable[..., Any]) -> str | None:
    """The ``package.module:name`` under which this very object is found; None for lambdas, closures and the like."""
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    found: Any = sys.modules.get(module or "")
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is given else None


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Everything of one kind that can be named.

    Parameters
    ----------
    noun : what one of them is called in an error, as "Strategy".
    group : the entry point group in which packages announce theirs.
    built_in : agcd's own by name.
    """

    noun: str
    group: str
    built_in: Mapping[str, T]

    def get(self, name: str | T) -> T:
        """What has this name, or what was given in its place; a name that nothing has is one sentence."""
        if not isinstance(name, str):
            return name
        return self.built_in[name] if name in self.built_in else self.load(self._value(name))

    def code(self, name: str | T) -> str | None:
        """A digest of the source of what has this name; None for agcd's own, whose version is that of agcd.

        What was given in place of a name and has none has a digest that never comes again: its source does not say
        what it has enclosed.
        """
        if not isinstance(name, str):
            place = place_of(name)
            return uuid.uuid4().hex if place is None else self.code(place)
        if name in self.built_in:
            return None
        value = self._value(name)
        found, module = self.load(value), value.partition(":")[0]
        defined = found if inspect.isclass(found) or inspect.isroutine(found) else type(found)
        return source_digest(module, defined.__module__ or module)  # what C has defined may not say where

    def installed(self) -> dict[str, EntryPoint]:
        """What installed packages announce, by name."""
        return {point.name: point for point in entry_points(group=self.group)}

    def load(self, value: str) -> T:
        """What ``package.module:name`` means."""
        module, _, attribute = value.partition(":")
        try:
            found: Any = importlib.import_module(module)
            source_digest(module)  # remembers what runs from now on: the file may be edited later
            for part in attribute.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError(f"{self.noun} {value!r} could not be loaded: {error}.") from error
        if not callable(found):
            raise ConfigError(f"{self.noun} {value!r} is a {type(found).__name__}, which cannot be called.")
        loaded: T = found
        return loaded

    def _value(self, name: str) -> str:
        """The ``package.module:name`` behind the name of something that is not built in."""
        if ":" in name:
            return name
        installed = self.installed()
        if name not in installed:
            hint = did_you_mean(name, [*self.built_in, *installed])
            raise ConfigError(f"Unknown {self.noun.lower()} {name!r}.{hint}")
        return installed[name].value
