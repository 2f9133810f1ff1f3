"""Bodies of requests: JSON that has one reading, of whole characters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from agcd.app.strict_json import parse_strictly

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Escapes of characters that are written in two halves."""


def parse_body(body: bytes) -> Any:
    """The value in a body; ValueError where it is none, or a text could not be sent back."""
    text = body.decode()
    value = parse_strictly(text)
    if _ESCAPED_HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text holds half a character (a lone surrogate)") from None
    return value


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return parse_body(await self.body())
        except RecursionError:
            raise HTTPException(422, "The body is nested too deeply") from None
        except ValueError as error:  # not UTF-8, not JSON, a number of thousands of digits, or what has two readings
            raise HTTPException(422, f"The body is not valid JSON: {error!s:.200}") from None


class StrictRoute(APIRoute):
    """A route whose body has one reading."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answer_strictly(request: Request) -> Response:
            return await answer(_StrictRequest(request.scope, request.receive))

        return answer_strictly
