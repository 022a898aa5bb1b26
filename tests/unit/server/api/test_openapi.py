"""The OpenAPI document as a whole: names, errors, and examples that their own schemas accept."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from hangwatch_server.app import create_app
from hangwatch_server.settings import ServerSettings

DOCUMENT = create_app(ServerSettings()).openapi()
OPERATIONS = {
    f"{method} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def contents(operation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{status} {media}", content)
        for status, answer in operation["responses"].items()
        for media, content in answer.get("content", {}).items()
    ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_example_is_one_that_its_schema_accepts(name: str) -> None:
    for where, content in contents(OPERATIONS[name]):
        if "example" in content and "schema" in content:
            schema = {**content["schema"], "components": DOCUMENT["components"]}
            problems = [
                f"{where}: {error.instance_path} {error.message}"
                for error in jsonschema_rs.validator_for(schema).iter_errors(content["example"])
            ]
            assert problems == []


def test_no_two_operations_have_one_name() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]

    assert len(set(names)) == len(names)


def test_a_field_that_may_be_null_is_shown_as_null() -> None:
    answer = OPERATIONS["get /api/v1/jobs/{job_id}/verdict"]["responses"]["200"]

    assert answer["content"]["application/json"]["example"]["culprits"][0]["gpu"] is None


@pytest.mark.parametrize("name", [name for name in OPERATIONS if " /api/" in name])
def test_errors_that_any_call_can_answer_are_described(name: str) -> None:
    expected = {"400", "401", "403", "404", "422", "503"}
    expected |= set() if name.startswith("get ") else {"409"}
    expected |= {"413"} if "requestBody" in OPERATIONS[name] else set()

    assert expected <= OPERATIONS[name]["responses"].keys()


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith("get /api/")])
def test_a_poller_learns_of_the_etag(name: str) -> None:
    answers = OPERATIONS[name]["responses"]
    is_text = {"application/json", "text/plain"} & set(answers["200"]["content"])

    assert ("304" in answers) == ("ETag" in answers["200"].get("headers", {})) == bool(is_text)
