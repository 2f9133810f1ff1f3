"""A digest of the source of code that is not agcd's own, so that no stored result outlives the code it came from.

What counts is the file of a module and, import by import, the files of its neighbours: modules of the same top-level
package and, unless packages are installed there, of the same folder. Imports are read from the source, also those
inside functions, and nothing is executed for it. Other packages do not count (numpy, for instance), nor do files and
modules whose names are made up at run time.

Code that runs here is known by its source as it was when it was loaded: what somebody edits meanwhile runs only in the
next process. A module without a file, as typed at a prompt, has a digest that never comes again, so nothing that it
made is ever reused.

A function or class of a notebook has no file, or one that holds much else. ``value_digest`` knows it by what Python has
compiled, by its defaults, by what it encloses and by the globals that it reads, each likewise. Where one of these is
neither code nor a plain value, that digest never comes again either.
"""

from __future__ import annotations

import ast
import dis
import functools
import sys
import sysconfig
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, all_suffixes
from itertools import accumulate, product
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from agcd.io import digest, digest_bytes

_OWN = __name__.partition(".")[0]


def source_digest(*modules: str) -> str | None:
    """A name for the source of these loaded modules and of their neighbours; None if all of them are agcd's own."""
    found: dict[str, str] = {}
    for name in modules:
        if name.partition(".")[0] != _OWN:
            found |= _sources(name)
    return digest(found) if found else None


@dataclass(frozen=True)
class _Source:
    """What was read of one file."""

    digest: str
    imports: frozenset[str]
    """Every module that it imports or may import: ``from a import b`` may mean a module ``a.b``."""


_LOADED: dict[Path, tuple[ModuleSpec | None, _Source]] = {}
"""What was read of the files of loaded modules, with the spec each was loaded by: loading it again makes a new one."""


@dataclass(frozen=True)
class _Home:
    """The folder in which Python found a top-level module or package, and what of it are neighbours."""

    folder: Path
    top: str | None
    """The only package that counts; None where everything in the folder does."""

    def place(self, file: Path) -> str:
        """Where a file lies in the folder, the same on every machine."""
        return file.relative_to(self.folder).as_posix()

    def file_of(self, name: str) -> Path | None:
        """The file of a module that is a neighbour, found without importing anything."""
        if name.partition(".")[0] in {_OWN, ""} or (self.top and name.partition(".")[0] != self.top):
            return None
        stem = self.folder.joinpath(*name.split("."))
        files = (Path(f"{place}{suffix}") for place, suffix in product((stem / "__init__", stem), all_suffixes()))
        return next((file for file in files if file.is_file()), None)


def _sources(name: str) -> dict[str, str]:
    """A digest of each file that counts for a loaded module, by its path in the folder it was found in."""
    module = sys.modules.get(name)
    file = Path(getattr(module, "__file__", None) or "")
    if not file.is_file():
        return {name: uuid.uuid4().hex}
    home, found, todo = _home(name, file), dict[str, str](), {name: file}
    while todo:
        name, file = todo.popitem()
        source = _read(name, file)
        found[home.place(file)] = source.digest
        files = {other: home.file_of(other) for other in source.imports}
        todo |= {other: path for other, path in files.items() if path and home.place(path) not in found}
    return found


def _home(name: str, file: Path) -> _Home:
    depth = name.count(".") + (file.stem == "__init__")
    folder = file.parents[min(depth, len(file.parents) - 1)]
    is_shared = any(folder.glob("*.dist-info")) or folder == Path(sysconfig.get_path("stdlib"))
    return _Home(folder, name.partition(".")[0] if is_shared else None)


def _read(name: str, file: Path) -> _Source:
    module = sys.modules.get(name)
    is_loaded, spec = getattr(module, "__file__", None) == str(file), getattr(module, "__spec__", None)
    if is_loaded and file in _LOADED and _LOADED[file][0] is spec:
        return _LOADED[file][1]
    content = file.read_bytes()
    imports = {above for one in _imports(name, file, content) for above in _with_packages(one)}
    source = _Source(digest_bytes(content), frozenset(imports))
    if is_loaded:
        _LOADED[file] = spec, source
    return source


def _imports(name: str, file: Path, content: bytes) -> Iterator[str]:
    """The modules that a file imports, and the one that it is, whose packages are loaded before it."""
    yield name
    package = name.split(".") if file.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(_parsed(content) if file.suffix == ".py" else ast.Module([], [])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: max(0, len(package) - node.level + 1)] if node.level else []
            module = [*above, *([node.module] if node.module else [])]
            yield from (".".join([*module, alias.name]) for alias in node.names)


def _parsed(content: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever imports the file has heard them
        try:
            return ast.parse(content)
        except (SyntaxError, ValueError):  # a neighbour that nobody could import
            return ast.Module([], [])


def _with_packages(name: str) -> Iterator[str]:
    """``a.b.c`` → ``a``, ``a.b``, ``a.b.c``: all of them are loaded."""
    return accumulate(name.split("."), "{}.{}".format)


# ---------------------------------------------------------------------------------------------- what has no file


def value_digest(value: Any) -> str:
    """A name for a function or class by what it does; equal in another process where nothing of it has changed."""
    return digest(_described(value, []))


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_OF_EVERY_CLASS = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__"})


def _described(value: Any, inside: list[Any]) -> Any:
    """``value`` as JSON says it. ``inside`` is what it is a part of: a function may call itself."""
    if isinstance(value, _PLAIN):
        return [type(value).__name__, repr(value)]
    for depth, whole in enumerate(inside):
        if whole is value:
            return ["inside", depth]
    parts = _parts(value)
    if parts is None:
        return uuid.uuid4().hex
    return [type(value).__name__, *(_described(part, [*inside, value]) for part in parts)]


def _parts(value: Any) -> list[Any] | None:
    """What makes ``value`` what it is; None where that cannot be told."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, set | frozenset):
        return sorted(map(value_digest, value))
    if type(value) is dict:
        return [part for item in value.items() for part in item]
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return [value.dtype.str, value.shape, digest_bytes(value.tobytes())]
    if isinstance(value, ModuleType | BuiltinFunctionType):
        return _parts_of_module(getattr(value, "__module__", None) or value.__name__, value.__name__)
    if isinstance(value, FunctionType | type) and value.__module__ != "__main__" and "<" not in value.__qualname__:
        return _parts_of_module(value.__module__, value.__qualname__)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, FunctionType):
        return _parts_of_function(value)
    if isinstance(value, type):
        own = {name: part for name, part in vars(value).items() if name not in _OF_EVERY_CLASS}
        return [value.__name__, value.__bases__, own]
    return _parts_of_code(value) if isinstance(value, CodeType) else None


def _parts_of_module(module: str, name: str) -> list[Any]:
    """What is found in a module is known by its name, and by the module's source where that is somebody's own."""
    file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
    is_own = file.is_file() and module.partition(".")[0] != _OWN and _home(module, file).top is None
    return [module, name, source_digest(module) if is_own else None]


def _parts_of_function(function: FunctionType) -> list[Any]:
    names = sorted(set(_global_names(function.__code__)) & set(function.__globals__))
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    defaults = [function.__defaults__, function.__kwdefaults__, vars(function)]
    return [function.__code__, *defaults, enclosed, {name: function.__globals__[name] for name in names}]


def _parts_of_code(code: CodeType) -> list[Any]:
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    return [code.co_code, counts, code.co_names, code.co_varnames, code.co_freevars, list(code.co_consts)]


def _global_names(code: CodeType) -> Iterator[str]:
    """The globals that a function reads, also in the functions inside it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _global_names(inner)
