"""What a request must look like before anybody asks who sent it: one function for each rule."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

API = "/api/v1"
"""Every route of the REST API stands under this; a change that breaks what scripts rely on makes a v2 beside it."""
LOGIN, LOGOUT = "/login", "/logout"
READING = frozenset({"GET", "HEAD"})
HOSTILE = re.compile(r"\.\.|[\\\x00-\x1f\x7f-\x9f]")


class Refused(Exception):
    """A request that goes no further; the sentence is for the person who made it."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}


def checked_host(headers: Headers, hosts: frozenset[str]) -> str:
    """The one Host of a request if it is ours: a name that an attacker points at this machine is not."""
    named = [host.lower() for host in headers.getlist("host")]
    if len(named) != 1 or named[0] not in hosts:
        raise Refused(421, "This server does not go by that name: use the address that agcd serve printed.")
    return named[0]


def is_sent_by_our_page(method: str, path: str, headers: Headers, host: str, secure: bool = False) -> bool:
    """Whether the browser vouches for that; what another site sent is refused.

    Where browsers come by https, a page that came by http is another site: anybody on the way may have written it.
    A person may come from the address bar ("none"), and to the login by a link on any site: it needs a token anyway.
    """
    site, origin = sole(headers, "sec-fetch-site"), sole(headers, "origin")
    mode, goal = headers.get("sec-fetch-mode", "navigate"), headers.get("sec-fetch-dest")
    is_ours = site == "same-origin"
    is_visit = method in READING and mode == "navigate"
    is_link = is_visit and path == LOGIN and goal == "document"
    if not (is_ours or site is None or (site == "none" and is_visit) or is_link):
        raise Refused(403, "Another site sent this: open the page from the address bar.")
    if origin is None or (origin == "null" and is_ours):  # browsers hide the origin of forms from no-referrer pages
        return is_ours
    if origin != f"https://{host}" and (secure or origin != f"http://{host}"):
        raise Refused(403, "Another site sent this: only our own page may.")
    return True


def is_hostile(path: str) -> bool:
    """Whether a path tries to climb or to smuggle; encoding it up to three times does not hide that.

    ``path`` has been decoded once, by the server.
    """
    for _ in range(3):
        if HOSTILE.search(path):
            return True
        path = unquote(path)
    return False


def body_limit(method: str, path: str, headers: Headers, most: int) -> int:
    """How many bytes the body may have; the API takes JSON or nothing."""
    lengths = headers.getlist("content-length")
    if len(lengths) > 1 or not all(re.fullmatch("[0-9]{1,20}", length) for length in lengths):
        raise Refused(400, "Content-Length must be one number.")
    length = int(lengths[0]) if lengths else 0
    if length > most:
        raise Refused(413, f"The request has {length:,} bytes; at most {most:,} are allowed.")
    if method in READING or not path.startswith("/api/") or media_type(headers) == "application/json":
        return most
    if length or "transfer-encoding" in headers:
        raise Refused(415, "Send application/json.")
    return 0  # who announces no body gets none through


async def read_body(receive: Receive, limit: int, seconds: float) -> bytes:
    """The whole body, if it has at most ``limit`` bytes and comes within ``seconds``."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > limit:
                    raise Refused(413, f"The request is larger than the {limit:,} bytes allowed.")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refused(408, f"The request did not arrive within {seconds:g} seconds.") from None


def sole(headers: Headers, name: str) -> str | None:
    """The value of a header that may not be sent twice."""
    values = headers.getlist(name)
    if len(values) > 1:
        raise Refused(403, f"The header {name} was sent {len(values)} times; once is expected.")
    return values[0] if values else None


def media_type(headers: Headers) -> str:
    """What the body says it is, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
