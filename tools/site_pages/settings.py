"""The reference of the settings, from the classes of ``agcd.config``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from agcd.config import PRESETS, Config, Settings, make_config
from site_pages.tables import cell, code, prose, table

_LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "at least", "max_length": "at most"}


def page() -> str:
    """Every setting with its type, its limits, its defaults and what it does."""
    lines: list[str] = []
    for section, model in sections(Config, ""):
        lines += [f"## {code(section) if section else 'The top'}", "", prose(model.__doc__), ""]
        rows = [
            (anchor(name), code(name), kind(field), defaults(name), docs.get(field_name, ""))
            for docs in [docstrings(model)]
            for field_name, field in model.model_fields.items()
            if section_of(field) is None
            for name in [f"{section}.{field_name}".lstrip(".")]
        ]
        lines += table(
            ("setting", "type and limits", "default", "what it does"),
            ((f"{mark}{name}", what, default, words) for mark, name, what, default, words in rows),
        )
    return "\n".join(lines)


def sections(model: type[Settings], name: str) -> Iterator[tuple[str, type[Settings]]]:
    """A class of settings and those inside it, each with where it stands."""
    yield name, model
    for field_name, field in model.model_fields.items():
        if (inner := section_of(field)) is not None:
            yield from sections(inner, f"{name}.{field_name}".lstrip("."))


def section_of(field: FieldInfo) -> type[Settings] | None:
    """The class of a field that is a section of its own."""
    found = field.annotation
    return found if isinstance(found, type) and issubclass(found, Settings) else None


def docstrings(model: type[Settings]) -> dict[str, str]:
    """What stands below each field in the source; Python itself does not keep it."""
    (body,) = [node.body for node in ast.parse(inspect.getsource(model)).body if isinstance(node, ast.ClassDef)]
    return {
        field.target.id: prose(inspect.cleandoc(below.value.value))
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def anchor(name: str) -> str:
    """So that a page can point at one setting."""
    return f'<a id="{name}"></a>'


def kind(field: FieldInfo) -> str:
    """Type and limits in words."""
    limits = [word for part in field.metadata for word in _limit(part)]
    return ", ".join([_type(field.annotation), *limits])


def _type(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(code(choice) for choice in inner)
    if origin is Annotated:
        return ", ".join([_type(inner[0]), *(word for part in inner[1].metadata for word in _limit(part))])
    if origin in (Union, UnionType):
        return " or ".join("none" if one is NoneType else _type(one) for one in inner)
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    names = {Path: "path", float: "number", int: "whole number", str: "text", bool: "true or false"}
    return "table of values" if origin is dict else names[annotation]


def _limit(part: Any) -> Iterator[str]:
    for name, words in _LIMITS.items():
        if (limit := getattr(part, name, None)) is not None:
            yield f"{words}\u00a0{limit}"
    if pattern := getattr(part, "pattern", None):
        yield f"like {code(cell(pattern))}"


def defaults(name: str) -> str:
    """The default of ``quick``, and those of other protocols that differ."""
    values = {protocol: shown(value_of(make_config({"protocol": protocol}), name)) for protocol in PRESETS}
    if name == "protocol":
        return values["quick"]
    first = values["quick"]
    others: dict[str, list[str]] = {}
    for protocol, value in values.items():
        if value != first:
            others.setdefault(value, []).append(code(protocol))
    return "; ".join([first, *(f"{', '.join(protocols)}: {value}" for value, protocols in others.items())])


def value_of(config: Config, name: str) -> Any:
    """A setting by its dotted name."""
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def shown(value: Any) -> str:
    """A value as TOML has it; a long list by its ends."""
    if value is None or value == {}:
        return "none"
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple) and len(value) > 6:
        return f"`{value[0]}`, `{value[1]}` … `{value[-1]}`"
    return ", ".join(map(shown, value)) if isinstance(value, tuple) else code(value)
