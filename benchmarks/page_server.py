"""``agcd serve`` as a process of its own, and a client that stands for one browser."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from agcd.app.store.events import new_uid


@dataclass
class Served:
    """A running server."""

    pid: int
    port: int
    token: str
    seconds: float
    """From the command to the first answer."""

    def cpu(self) -> float:
        """Seconds that its threads have been running."""
        spent = (task / "schedstat" for task in Path(f"/proc/{self.pid}/task").iterdir())
        return sum(int(file.read_text().split()[0]) for file in spent) / 1e9

    def memory(self, field: str) -> float:
        """Gigabytes by the name that the kernel gives them."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(rf"{field}:\s+(\d+) kB", status)[0]) / 2**20

    def has_loaded(self, library: str) -> bool:
        return library in Path(f"/proc/{self.pid}/maps").read_text()


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """``agcd serve``, ready to answer."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "agcd.cli", "serve", str(folder), "--port", "0", "--by-hand"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://[^:]+:(\d+)/login\?token=(\S+)", server.stdout.readline())
        assert found, "agcd serve printed no link"
        served = Served(server.pid, int(found[1]), found[2], 0.0)
        try:
            _wait_for(served)
            served.seconds = time.perf_counter() - began
            yield served
        finally:
            server.terminate()


def _wait_for(served: Served) -> None:
    for _ in range(1000):
        connection = http.client.HTTPConnection("127.0.0.1", served.port)
        try:
            connection.request("GET", "/api/v1/state", headers={"Authorization": f"Bearer {served.token}"})
            assert connection.getresponse().status == 200
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise TimeoutError("The server does not answer.")


class Client:
    """One browser: one connection, one person, and rows of its own to label."""

    def __init__(self, served: Served, name: str, rows: Iterator[int]) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", served.port)
        self.name, self.rows, self.headers = name, rows, {"Authorization": f"Bearer {served.token}"}
        self.holder = f"browser-of-{name}"
        self.asked: int | None = None
        self.classes: list[str] = [found["class_id"] for found in self.get("/api/v1/names")]
        self.keys: list[str] = [card["key"] for card in self.get("/api/v1/board")["cards"]]

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        headers = self.headers | ({"Content-Type": "application/json"} if body else {})
        self.http.request(method, path, json.dumps(body) if body else None, headers)
        answer = self.http.getresponse()
        content = answer.read()
        assert answer.status == 200, (path, answer.status, content[:300])
        return content

    def get(self, path: str, **params: Any) -> Any:
        return json.loads(self.send("GET", f"{path}?{urlencode(params)}"))

    def change(self, path: str, **values: Any) -> Any:
        return json.loads(self.send("POST", path, {"uid": new_uid(), "who": self.name} | values))

    def answer_live(self) -> None:
        """From the key to the next question: store an answer to the question there is, and get the next one."""
        if self.asked is not None:
            said = {"row": self.asked, "kind": "label", "class_id": self.classes[self.asked % 100]}
            self.change("/api/v1/answers", answers=[said])
        self.asked = self.get("/api/v1/question", who=self.name, holder=self.holder, live="true")["row"]

    def label(self) -> None:
        row = next(self.rows)
        self.change("/api/v1/answers", answers=[{"row": row, "kind": "label", "class_id": self.classes[row % 100]}])
