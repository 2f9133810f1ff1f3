"""The route of pictures: rows are plain numbers, browsers keep what cannot change, and answers never wait for it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from fastapi import FastAPI

from agcd.app.web.auth import CSP
from agcd.app.web.pictures import routes
from agcd.io import digest_bytes
from support.asgi_client import Call, call
from support.gates import BEARER, make_gate
from support.pictures import counted, encoded, quarters, scanned, size_of

CONTENT = encoded(quarters())
KEY = digest_bytes(CONTENT)


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """Picture 0 is whole, of picture 1 the file is gone."""
    app = FastAPI()
    app.include_router(routes(scanned(tmp_path, CONTENT, encoded(quarters(60, 60)))))
    (tmp_path / "images" / "1.img").unlink()
    return app


def test_a_picture_is_a_jpeg_to_be_shown_in_place(app: FastAPI) -> None:
    answer = call(app, "GET", "/image/0?size=320")
    assert (answer.status, size_of(answer.body)) == (200, (320, 160))
    headers = answer.answer_headers
    assert headers["content-type"] == "image/jpeg"
    assert headers["content-disposition"] == 'inline; filename="0.jpg"'
    assert headers["etag"] == f'"{KEY}-320"'
    assert size_of(call(app, "GET", "/image/0").body) == (160, 80)


@pytest.mark.parametrize(
    ("query", "cached"),
    [
        (f"?size=96&v={KEY[3:13]}", "private, max-age=31536000, immutable"),
        ("?size=96", "private, no-cache"),
        ("?size=96&v=", "private, no-cache"),
        (f"?size=96&v={KEY[3:12]}", "private, no-cache"),
        ("?size=96&v=0123456789", "private, no-cache"),
    ],
)
def test_only_a_picture_asked_for_by_its_version_is_kept_for_good(app: FastAPI, query: str, cached: str) -> None:
    answer = call(app, "GET", f"/image/0{query}")
    assert (answer.status, answer.answer_headers["cache-control"]) == (200, cached)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("tag", [f'"{KEY}-160"', f'W/"{KEY}-160"', f'"other", "{KEY}-160"'])
def test_a_browser_that_has_the_picture_is_told_so(app: FastAPI, method: str, tag: str) -> None:
    answer = call(app, method, "/image/0", {"if-none-match": tag})
    assert (answer.status, answer.body) == (304, b"")
    assert answer.answer_headers["etag"] == f'"{KEY}-160"'


@pytest.mark.parametrize("tag", [f'"{KEY}-96"', KEY, '"other"', ""])
def test_a_browser_that_has_another_picture_gets_this_one(app: FastAPI, tag: str) -> None:
    assert call(app, "GET", "/image/0", {"if-none-match": tag}).status == 200


def test_head_tells_the_same_as_get(app: FastAPI) -> None:
    head, get = call(app, "HEAD", "/image/0"), call(app, "GET", "/image/0")
    assert head.status == 200
    assert dict(head.answer_headers) == dict(get.answer_headers)
    assert call(app, "HEAD", "/image/99").status == 404


@pytest.mark.parametrize("wanted", ["bytes=0-9", "bytes=" + ",".join(f"{i}-{i}" for i in range(2000)), "bytes=-1"])
def test_a_range_is_not_heeded(app: FastAPI, wanted: str) -> None:
    answer = call(app, "GET", "/image/0", {"range": wanted})
    assert (answer.status, answer.body) == (200, call(app, "GET", "/image/0").body)
    assert "content-range" not in answer.answer_headers


@pytest.mark.parametrize(
    "row",
    [
        "2",
        "-1",
        "+0",
        "0.0",
        "0.",
        "0%20",
        "%200",
        "0x0",
        "1e0",
        "0_0",
        "%D9%A0",
        "abc",
        "C:",
        "null",
        "9" * 5000,
        "%C0%AE",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_row_that_is_no_number_of_a_picture_is_not_found(app: FastAPI, method: str, row: str) -> None:
    answer = call(app, method, f"/image/{row}")
    assert answer.status == 404
    assert len(answer.error) < 200


@pytest.mark.parametrize("size", ["0", "161", "-96", "96.0", "%2096", "huge", "1e3", "999999999999999999999", ""])
def test_a_size_that_we_do_not_make_is_not_found(app: FastAPI, size: str) -> None:
    answer = call(app, "GET", f"/image/0?size={size}", {"if-none-match": f'"{KEY}-{size}"'})
    assert answer.status == 404
    assert answer.error.endswith(".")


def test_a_file_that_is_gone_is_told_with_a_sentence(app: FastAPI, tmp_path: Path) -> None:
    answer = call(app, "GET", "/image/1")
    assert answer.status == 410
    assert answer.error == "Picture 1 cannot be shown: cannot be read (No such file or directory)."
    assert "cache-control" not in answer.answer_headers, "the gate sets no-store"


def test_pictures_pass_the_gate_with_its_headers_and_their_own_lifetime(app: FastAPI) -> None:
    answer = call(make_gate(app), "GET", f"/image/0?v={KEY[3:13]}", BEARER)
    assert answer.status == 200
    assert answer.answer_headers["x-content-type-options"] == "nosniff"
    assert answer.answer_headers["content-security-policy"] == CSP
    assert answer.answer_headers.getlist("cache-control") == ["private, max-age=31536000, immutable"]
    for target in ("/image/%2e%2e%2f0", "/image/0%00", "/image/..\\0"):
        assert call(make_gate(app), "GET", target, BEARER).status == 404


def test_a_flood_of_pictures_leaves_threads_for_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    calls = counted(monkeypatch, lambda: go_on.wait(timeout=20))
    contents = [encoded(quarters(20 + 2 * i, 20)) for i in range(60)]
    app = FastAPI()
    app.include_router(routes(scanned(tmp_path, *contents)))

    @app.post("/api/v1/answers")
    def answers() -> str:
        return "stored"

    async def flood() -> list[int]:
        asked = [asyncio.create_task(Call("GET", f"/image/{row}").send(app)) for row in range(len(contents))]
        while not calls:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(10):
                assert (await Call("POST", "/api/v1/answers").send(app)).status == 200
        finally:
            go_on.set()
        return [answer.status for answer in await asyncio.gather(*asked)]

    assert asyncio.run(flood()) == [200] * len(contents)
