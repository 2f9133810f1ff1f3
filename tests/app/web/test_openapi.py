"""The description of the API is whole: how to log in, what may go wrong, and which methods a path knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest
from starlette.testclient import TestClient

from agcd.app.web.app import make_api
from support.projects import make_project
from support.servers import Client, serving


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("described")
    make_project(folder).close()
    with serving(folder / "project") as opened:
        yield opened


@pytest.fixture
def schema(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/openapi.json")
    return found


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_a_client_is_told_how_to_log_in(schema: dict[str, Any]) -> None:
    assert schema["security"] == [{"token": []}, {"person": []}, {"session": []}]
    schemes = schema["components"]["securitySchemes"]
    assert (schemes["token"]["type"], schemes["token"]["scheme"]) == ("http", "bearer")
    assert (schemes["person"]["type"], schemes["person"]["scheme"]) == ("http", "basic")
    assert (schemes["session"]["in"], schemes["session"]["type"]) == ("cookie", "apiKey")


def test_every_error_is_told_with_its_shape(schema: dict[str, Any]) -> None:
    for path, method, operation in operations(schema):
        errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        assert {"400", "401", "403", "404", "405", "408", "409", "413", "421", "429", "503"} <= set(errors), path
        assert ("415" in errors) == (method != "get")
        assert "422" in errors or not ("parameters" in operation or "requestBody" in operation)
        for answer in errors.values():
            assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
            assert answer["description"].endswith(".")
    assert not {"HTTPValidationError", "ValidationError"} & set(schema["components"]["schemas"])


def test_every_operation_needs_the_token(client: Client, schema: dict[str, Any]) -> None:
    for path, method, _ in operations(schema):
        response = client.http.request(method, path.format(row=1, name="x"), headers={"Authorization": ""})
        assert (response.status_code, list(response.json())) == (401, ["error"]), path


def test_without_the_gate_options_names_the_methods_too(schema: dict[str, Any]) -> None:
    with TestClient(make_api(MagicMock())) as http:  # routes that are not called need no project
        for path, known in schema["paths"].items():
            response = http.options(path.format(row=1, name="x"))
            assert response.status_code == 405
            assert {word.lower() for word in response.headers["allow"].split(", ")} - {"head"} == set(known), path


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete", "head", "propfind"])
def test_who_uses_another_method_is_told_all_that_there_are(
    client: Client, schema: dict[str, Any], method: str
) -> None:
    for path, known in schema["paths"].items():
        if method in known or (path, method) == ("/image/{row}", "head"):
            continue
        response = client.http.request(method.upper(), path.format(row=1, name="x"))
        assert response.status_code == 405
        assert {word.lower() for word in response.headers["allow"].split(", ")} - {"head"} == set(known), path


def test_static_files_and_pages_are_only_read(client: Client) -> None:
    for path in ("/static/style.css", "/label"):
        response = client.http.delete(path)
        assert response.status_code == 405
        assert "GET" in response.headers["allow"]
