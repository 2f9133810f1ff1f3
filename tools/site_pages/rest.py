"""The reference of the REST API, from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

from agcd.app.web.app import make_api
from site_pages.tables import code, prose, table

Schema = dict[str, Any]
_LIMITS = {
    "minimum": "≥",
    "exclusiveMinimum": ">",
    "maximum": "≤",
    "exclusiveMaximum": "<",
    "minLength": "characters ≥",
    "maxLength": "characters ≤",
    "minItems": "items ≥",
    "maxItems": "items ≤",
}


def page() -> str:
    """Every operation with its parameters, its body, its answer and its statuses; then the objects that they name."""
    document = make_api(MagicMock()).openapi()  # the routes are read and never called
    operations = [(path, method, one) for path, ways in document["paths"].items() for method, one in ways.items()]
    lines = ["## Statuses", "", *table(("status", "means"), statuses(operations)), "## Operations", ""]
    for path, method, operation in operations:
        lines += [f"### {code(f'{method.upper()} {path}')}", "", prose(operation.get("description")), ""]
        lines += _asked(operation)
        lines += [f"Gives {_answer(operation)}. Statuses: {', '.join(sorted(operation['responses']))}.", ""]
    lines += ["## Objects", ""]
    for name, schema in document["components"]["schemas"].items():
        lines += [f"### {name}", "", prose(schema.get("description")), "", *_fields(schema)]
    return "\n".join(lines)


def statuses(operations: list[tuple[str, str, Schema]]) -> list[tuple[str, str]]:
    """Every status with what the description says of it; one that means several things has a line for each."""
    found = {
        (status, " ".join(response["description"].split()))
        for _, _, operation in operations
        for status, response in operation["responses"].items()
    }
    return [(status, "done" if words == "Successful Response" else words) for status, words in sorted(found)]


def _asked(operation: Schema) -> list[str]:
    lines = table(
        ("parameter", "in", "type", "default", "what it is"),
        (
            (code(one["name"]), one["in"], kind(one["schema"]), _default(one["schema"], one), _words(one))
            for one in operation.get("parameters", ())
        ),
    )
    if body := operation.get("requestBody"):
        (content,) = body["content"].values()
        lines += [f"Body: {kind(content['schema'])}.", ""]
    return lines


def _answer(operation: Schema) -> str:
    content = operation["responses"]["200"].get("content", {})
    kinds = [kind(one["schema"]) if one.get("schema") else code(name) for name, one in content.items()]
    return " or ".join(kinds) or "nothing"


def _fields(schema: Schema) -> list[str]:
    required = set(schema.get("required", ()))
    return table(
        ("field", "type", "default", "what it is"),
        (
            (code(name), kind(one), _default(one, {"required": name in required}), _words({"schema": one}))
            for name, one in schema.get("properties", {}).items()
        ),
    )


def kind(schema: Schema) -> str:
    """A type in words, with its limits; an object by its name."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(kind(one) for one in schema[key]))
    if "const" in schema or "enum" in schema:
        return " or ".join(code(one) for one in schema.get("enum", [schema.get("const")]))
    return ", ".join([_name(schema), *_limits(schema)])


def _name(schema: Schema) -> str:
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"object of {kind(inner)}" if isinstance(inner, dict) and inner else "object"
    found: str = schema.get("type", "anything")
    names = {"integer": "whole number", "string": "text", "boolean": "true or false", "null": "null"}
    return names.get(found, found)


def _limits(schema: Schema) -> Iterator[str]:
    for key, sign in _LIMITS.items():
        if key in schema:
            yield f"{sign}\u00a0{schema[key]:,.15g}"
    if "pattern" in schema:
        yield f"like {code(schema['pattern'])}"


def _default(schema: Schema, where: Schema) -> str:
    if where.get("required"):
        return "required"
    value = schema.get("default")
    return "–" if value in (None, "") else code(str(value).lower() if isinstance(value, bool) else value)


def _words(where: Schema) -> str:
    return prose(where.get("description") or where["schema"].get("description"))
