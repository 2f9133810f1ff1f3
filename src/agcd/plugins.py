"""Code from outside: strategies, trainers and the like that are somebody else's, found by name, known by their source.

A name is one of agcd's own, one that an installed package announces in an entry point group, or
``package.module:name``; functions and classes that no other process can import may be ``lent`` under a name. agcd's own
come first, so that no package can take a name from them. Keys of results hold a digest of code from outside
(``agcd.provenance``), since a name alone does not say which version of it ran.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from agcd.errors import ConfigError, did_you_mean
from agcd.provenance import source_digest, value_digest

T = TypeVar("T", bound=Callable[..., Any])


def place_of(given: Callable[..., Any]) -> str | None:
    """The ``package.module:name`` under which this very object is found; None for lambdas, closures and the like."""
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    found: Any = sys.modules.get(module or "")
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is given else None


def is_importable(given: Callable[..., Any]) -> bool:
    """Whether another process finds this object by its place: what a script or a notebook defines it does not."""
    place = place_of(given)
    return place is not None and not place.startswith("__main__:")


@dataclass(frozen=True)
class Installed:
    """What a package announces: its name, its ``package.module:name``, the package, and in words whether it works."""

    name: str
    value: str
    package: str
    words: str


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
    _lent: dict[str, tuple[T, str]] = field(default_factory=dict, repr=False, compare=False)
    """What this process alone has, by name, with a digest of it."""

    @contextmanager
    def lent(self, things: Mapping[str, T]) -> Iterator[None]:
        """Have these found under these names, for a while and in this process alone."""
        for name in things:
            if name in self.built_in or name in self._lent:
                raise ConfigError(f"There is a {self.noun.lower()} {name!r} already: give yours another name.")
        # One digest for as long as it is lent: of some things it is another one each time.
        self._lent.update({name: (thing, value_digest(thing)) for name, thing in things.items()})
        try:
            yield
        finally:
            for name in things:
                del self._lent[name]

    def is_lent(self, name: str) -> bool:
        """Whether only this process knows what the name means."""
        return name in self._lent

    def names(self) -> list[str]:
        """Every name but those with a colon: agcd's own first."""
        return list(dict.fromkeys([*self.built_in, *self._lent, *sorted(self.installed())]))

    def get(self, name: str | T) -> T:
        """What has this name, or what was given in its place; a name that nothing has is one sentence."""
        if not isinstance(name, str):
            return name
        if name in self.built_in:
            return self.built_in[name]
        return self._lent[name][0] if name in self._lent else self.load(self._value(name))

    def code(self, name: str | T) -> str | None:
        """A digest of the source of what has this name; None for agcd's own, whose version is that of agcd.

        What no other process could import is known by what it does and encloses (``value_digest``).
        """
        if not isinstance(name, str):
            place = place_of(name)
            return self.code(place) if place and is_importable(name) else value_digest(name)
        if name in self.built_in:
            return None
        if name in self._lent:
            return self._lent[name][1]
        value = self._value(name)
        found, module = self.load(value), value.partition(":")[0]
        defined = found if inspect.isclass(found) or inspect.isroutine(found) else type(found)
        return source_digest(module, defined.__module__ or module)  # what C has defined may not say where

    def installed(self) -> dict[str, EntryPoint]:
        """What installed packages announce, by name."""
        return {point.name: point for point in entry_points(group=self.group)}

    def describe_installed(self) -> list[Installed]:
        """What installed packages announce, each loaded to see whether it can be."""
        found = []
        for name, point in sorted(self.installed().items()):
            words = "ok"
            if name in self.built_in:
                words = "not reachable: agcd has its own of this name"
            else:
                try:
                    self.load(point.value)
                except ConfigError as error:
                    words = str(error)
            package = f"{point.dist.name} {point.dist.version}" if point.dist else ""
            found.append(Installed(name, point.value, package, words))
        return found

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
            hint = did_you_mean(name, self.names())
            raise ConfigError(f"Unknown {self.noun.lower()} {name!r}.{hint}")
        return installed[name].value
