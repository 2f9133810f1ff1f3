"""Bodies of requests: JSON that has one reading, of whole characters."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from agcd.io import parse_strictly


def parse_body(body: bytes) -> Any:
    """The value in a body; ValueError where it is none, or a text could not be sent back."""
    return parse_strictly(body.decode())


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
