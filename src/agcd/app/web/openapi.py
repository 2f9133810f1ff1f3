"""What the OpenAPI description says of every operation: how to log in, and which errors there may be."""

from __future__ import annotations

from typing import Any

ERRORS = {
    400: "The head of the request contradicts itself.",
    401: "No token or password, or a wrong one.",
    403: "Another site sent it, or this person may not do it.",
    404: "There is no such row, file or page.",
    405: "The path knows other methods only; `Allow` lists them.",
    408: "The body did not arrive in time.",
    409: "Not possible now, or not with this project.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    421: "The server does not go by the name in `Host`.",
    422: "A value is missing, of a wrong kind or outside its limits.",
    429: "Too many wrong passwords: `Retry-After` says how long to wait.",
    503: "Too many connections are open, too many people log in at once, or the list of people is damaged.",
}
_ERROR = "Error"
_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token in the link that `agcd serve` prints, or the password.",
    },
    "person": {"type": "http", "scheme": "basic", "description": "The name and the password of a person."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "agcd_session_8765",
        "description": "What a browser gets by logging in. The name ends with the port of the server, or with a digest "
        "of its name where that has no port. Changes by cookie must carry our own `Origin`.",
    },
}


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """FastAPI's ``schema`` with the ways to log in, and every status that may come back from each operation."""
    components = schema.setdefault("components", {})
    components["securitySchemes"] = _SCHEMES
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas[_ERROR] = {
        "type": "object",
        "title": _ERROR,
        "required": ["error"],
        "properties": {"error": {"type": "string", "title": "Error", "description": "One sentence."}},
    }
    schema["security"] = [{name: []} for name in _SCHEMES]
    for methods in schema["paths"].values():
        for method, operation in methods.items():
            _add_errors(method, operation)
    schema["paths"]["/image/{row}"]["get"]["responses"]["304"] = {"description": "What the browser has is up to date."}
    return schema


def _add_errors(method: str, operation: dict[str, Any]) -> None:
    own = operation["responses"]
    for status in ERRORS:
        if _may_answer(status, method, operation):
            own.setdefault(str(status), {})
    for status, response in own.items():
        if int(status) >= 400:
            response["content"] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{_ERROR}"}}}
            if status == "422" or "description" not in response:
                response["description"] = ERRORS[int(status)]
    operation["responses"] = dict(sorted(own.items()))


def _may_answer(status: int, method: str, operation: dict[str, Any]) -> bool:
    if status == 415:
        return method != "get"
    return status != 422 or "requestBody" in operation or "parameters" in operation
