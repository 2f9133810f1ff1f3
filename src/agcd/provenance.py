"""A digest of the source of code that is not agcd's own, so that no stored result outlives the code it came from.

What counts is the file of a module and, import by import, the files of its neighbours: modules of the same top-level
package and, unless packages are installed there, of the same folder. Imports are read from the source, also those
inside functions, and nothing is executed for it. Other packages do not count (numpy, for instance), nor do files and
modules whose names are made up at run time.

Code that runs here is known by its source as it was when it was loaded: what somebody edits meanwhile runs only in the
next process. Code without a file, as typed at a prompt, has a digest that never comes again, so nothing that it made
is ever reused.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, all_suffixes
from itertools import accumulate, product
from pathlib import Path

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
