"""A person who knows the truth, played by a script that talks to the labelling page's server over HTTP."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from agcd.errors import StorageError

_POLL_SECONDS = 0.2
"""Between two looks at a running round, which takes seconds to minutes."""


@dataclass(frozen=True)
class Annotator:
    """Answers every question of a served project by the truth."""

    address: str
    secret: str
    truth: Callable[[int], str]
    """The class of a row."""
    who: str = "script"

    def label_round(self) -> int:
        """Answer until nothing is left to ask; how many answers that took."""
        n_answers = 0
        while (row := self.call("/api/question", who=self.who, holder="a-script-holds-it")["row"]) is not None:
            said = {"row": row, "kind": "label", "name": self.truth(row)}
            self.call("/api/answers", {"uid": uuid4().hex, "who": self.who, "answers": [said]})
            n_answers += 1
        return n_answers

    def train_round(self) -> None:
        """Start the next round and wait until it is done."""
        self.call("/api/job", {"kind": "round"})
        while (job := self.call("/api/job"))["state"] == "running":
            time.sleep(_POLL_SECONDS)
        if job["state"] != "done":
            raise StorageError(f"The round did not finish: {job['error']}")

    def call(self, path: str, body: dict[str, Any] | None = None, **params: str) -> Any:
        """GET, or POST where there is a body; the answer as JSON."""
        query = f"?{urlencode(params)}" if params else ""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path + query, data, headers)
        with urllib.request.urlopen(request) as response:
            return json.load(response)
