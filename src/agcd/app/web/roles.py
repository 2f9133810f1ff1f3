"""What each role may do, in one table by method and path, and that nobody answers in another's name."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from agcd.app.web.people import Person, Role
from agcd.app.web.request_checks import API, READING, Refused

QUESTION = f"{API}/question"
"""Reading it reserves a picture for the person, so it is part of labelling."""
LABELLING = frozenset(
    {("GET", QUESTION)}
    | {("POST", f"{API}/{path}") for path in ("answers", "undo", "accept", "queue", "selections")}
    | {("POST", f"{API}/review/{path}") for path in ("confirm", "accept")}
)
_MAY = {Role.VIEW: "look but not label", Role.LABEL: "label but not manage the project"}


def needed_role(method: str, path: str) -> Role:
    """The least role for a request; a change that is not in the table is for those who manage."""
    if (method, path) in LABELLING:
        return Role.LABEL
    return Role.VIEW if method in READING else Role.MANAGE


def check_role(person: Person, method: str, path: str) -> None:
    """Refuse what the role of a person does not allow."""
    needed = needed_role(method, path)
    if not person.role.includes(needed):
        raise Refused(403, f"{person.name} may {_MAY[person.role]}: this needs the role {needed.value!r}.")


def check_who(person: Person, method: str, path: str, query: bytes, body: bytes) -> None:
    """Refuse a request that speaks in the name of somebody else; elsewhere in a query ``who`` is what is looked for."""
    if path == QUESTION:
        said = parse_qs(query.decode("utf-8", "replace"), keep_blank_values=True).get("who", [])
    elif method in READING or not body:
        return
    else:
        said = _said_in(body)
    if any(who != person.name for who in said):
        raise Refused(403, f"You are logged in as {person.name}: answer under this name, or log in as somebody else.")


def _said_in(body: bytes) -> list[Any]:
    """Every ``who`` of a JSON object: which of two the application would take is not for a stranger to choose."""
    objects: list[list[tuple[str, Any]]] = []

    def remember(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(pairs)
        return {}

    try:
        json.loads(body, object_pairs_hook=remember)
    except (ValueError, RecursionError):
        raise Refused(422, "The body is no JSON that can be read.") from None
    return [value for key, value in (objects[-1] if objects else []) if key == "who"]
