"""Requests made up from the OpenAPI description and sent to a server; most are led to rows and classes that exist."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.types import ASGIApp

from agcd.app.export.files import light_files
from agcd.app.jobs import Jobs, JobState, write_job
from agcd.app.web import grid_map
from agcd.app.web.app import make_app
from agcd.app.web.auth import GateSettings
from agcd.app.web.server_state import ServerState
from support.projects import N_IMAGES
from support.servers import SECRET

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
]
HEADERS = {"Authorization": f"Bearer {SECRET}"}
HOST = "testserver"
"""Under which schemathesis calls an application in its own process."""
_SETTINGS = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
_ORDERS = {*grid_map.ORDERS, "typical", "border", "labelled"}
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


class Fuzzer:
    """One server and the requests that were sent to it, counted by operation and status."""

    def __init__(self, app: ASGIApp, server: ServerState) -> None:
        self.schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=HEADERS)
        self.server, self.sent = server, Counter[tuple[str, int]]()

    def operations(self) -> list[Any]:
        found: list[Any] = list(self.schema.get_all_operations())
        return [operation.ok() for operation in found]

    def try_all(self, n: int, number: int = 0) -> None:
        """``n`` requests of each kind, valid and not, to every operation; the same ones for the same ``number``."""
        for operation in self.operations():
            for mode in MODES:
                self._try(operation, mode, n, number)

    def _try(self, operation: Any, mode: GenerationMode, n: int, number: int) -> None:
        home = _Home(self.server, random.Random(f"{operation.label} {mode} {number}"))

        @seed(number)
        @settings(
            max_examples=n,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Case[Any]) -> None:
            if mode is GenerationMode.POSITIVE:
                home.lead(case)
            response = case.call(headers=HEADERS)
            self.sent[operation.label, response.status_code] += 1
            case.validate_response(response, checks=CHECKS, headers=HEADERS)

        send()

    @property
    def statuses(self) -> Counter[int]:
        counts = Counter[int]()
        for (_, status), n in self.sent.items():
            counts[status] += n
        return counts


class _Home:
    """Leads most valid requests to what the project has: a made-up row or id is hardly ever one."""

    def __init__(self, server: ServerState, rng: random.Random) -> None:
        self.server, self.rng = server, rng
        self.values: dict[str, Callable[[Any], Any]] = {
            "row": self._row,
            "last_row": self._row,
            "rows": self._rows,
            "junk": self._rows,
            "except_rows": self._rows,
            "answered": self._rows,
            "class_id": self._class_id,
            "key": self._key,
            "one": self._key,
            "into": lambda value: self._class_id(value) if len(str(value)) == 32 else self._key(value),
            "name": lambda _: rng.choice(light_files()),
            "uid": lambda _: f"{rng.getrandbits(128):032x}",
            "who": lambda _: rng.choice(("ann", "bob")),
            "order": lambda value: value if value in _ORDERS else "the-order-of-all",
        }

    def lead(self, case: Case[Any]) -> None:
        if self.rng.random() < 0.2:
            return
        for values in (case.path_parameters, case.query, case.body):
            self._lead(values)

    def _lead(self, values: Any) -> None:
        for place, value in list(values.items() if isinstance(values, dict) else ()):
            if place in self.values and value is not None and self.rng.random() < 0.9:
                values[place] = self.values[place](value)
            for inner in value if isinstance(value, list) else ():
                self._lead(inner)

    def _row(self, _: Any) -> int:
        return self.rng.randrange(N_IMAGES)

    def _rows(self, value: Any) -> Any:
        return self.rng.sample(range(N_IMAGES), min(len(value), N_IMAGES)) if isinstance(value, list) else value

    def _class_id(self, _: Any) -> str:
        with self.server.moment() as snapshot:
            return self.rng.choice(snapshot.labels.registry.infos).id

    def _key(self, _: Any) -> str:
        with self.server.moment() as snapshot:
            return self.rng.choice(list(snapshot.groups.values())).key


def _begin_nothing(jobs: Jobs, kind: Any, n_questions: int | None) -> JobState:
    """As a job whose process dies at once."""
    state = JobState("running", kind, "starting")
    write_job(jobs.folder, state)
    return state


@contextmanager
def fuzzed(project: Path, monkeypatch: Any) -> Iterator[Fuzzer]:
    """The whole application of a project; it starts no training."""
    monkeypatch.setattr(Jobs, "_begin", _begin_nothing)
    server = ServerState(project)
    try:
        yield Fuzzer(make_app(server, GateSettings(SECRET, frozenset({HOST}))), server)
    finally:
        server.close()
