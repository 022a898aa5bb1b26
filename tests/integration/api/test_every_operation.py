"""Every operation of the OpenAPI document, asked by schemathesis with what the document allows and
with what it forbids, on a real server with a real hang in it: no defect, and every answer is one
that the document describes. FUZZ_EXAMPLES says how many times each is asked (`make fuzz`).

Left out are the stream of events, which has no end, and the agents' WebSocket, which OpenAPI cannot
describe: their own tests are in test_jobs.py and tests/property/test_wire.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as draw
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from tests.support import synthetic_agent, waiting
from tests.support.running_server import RunningServer

from hangwatch_agent import wire
from hangwatch_server.app import create_app
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.integration

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "6"))
ENDLESS = {"GET /api/v1/events"}
CALLERS = ("admin", "read", "nobody")
OPEN_TO_ALL = {"GET /healthz", "GET /readyz", "POST /login"}
JOB = "gpt/fuzz"
_SCHEMA = schemathesis.openapi.from_dict(create_app(ServerSettings()).openapi())
_ALL = {found.ok().label: found.ok() for found in _SCHEMA.get_all_operations()}
OPERATIONS = {label: operation for label, operation in _ALL.items() if label not in ENDLESS}
CHECKS = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.allow_header_conformance,
)


@pytest.fixture(scope="module")
def known(api_server: RunningServer) -> Iterator[dict[str, str]]:
    """By name of a path's field, what is there to be asked about: a hung job and all of its."""
    token = api_server.new_token("agent", "node/hung")
    launch = wire.Launch(key="launch to be asked about", name=JOB)
    with (
        synthetic_agent.beating(api_server.url, token, "node/hung", launch) as agent,
        api_server.client() as client,
    ):
        waiting.until(lambda: _job_in(client, "healthy"), 90, "the job is healthy")
        agent.is_gone = True
        job = waiting.until(lambda: _job_in(client, "hung"), 90, "the job is hung")
        capture = client.post(f"/api/v1/jobs/{job['id']}/captures", json={}).json()
        client.get(f"/api/v1/captures/{capture['id']}", params={"wait": "60s"})
        groups = client.get(f"/api/v1/jobs/{job['id']}/groups").json()["items"]
        yield {
            "job_id": job["id"],
            "incident_id": job["verdict"]["incident"],
            "capture_id": capture["id"],
            "gid": groups[0]["gid"],
            "name": "node/hung",
            "rank": "0",
        }


@pytest.fixture(scope="module")
def tokens(api_server: RunningServer) -> dict[str, str]:
    return {"admin": api_server.admin_token, "read": api_server.new_token("read"), "nobody": ""}


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("label", sorted(OPERATIONS))
def test_whatever_is_asked_the_answer_is_one_that_the_document_describes(
    api_server: RunningServer,
    tokens: dict[str, str],
    known: dict[str, str],
    label: str,
    caller: str,
) -> None:
    cases = draw.one_of(*(OPERATIONS[label].as_strategy(mode) for mode in GenerationMode))
    headers = {"authorization": f"Bearer {tokens[caller]}"} if tokens[caller] else {}
    statuses: set[int] = set()

    with requests.Session() as session:

        @settings(
            max_examples=EXAMPLES,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(case=cases, is_known=draw.booleans())
        def ask(case: Case[Any], is_known: bool) -> None:
            if is_known:
                case.path_parameters = {
                    name: known.get(name, value) for name, value in case.path_parameters.items()
                }
            answer = case.call(base_url=api_server.url, session=session, headers=headers)
            case.validate_response(answer, checks=CHECKS)
            statuses.add(answer.status_code)

        ask()

    if caller == "nobody" and label not in OPEN_TO_ALL:
        assert statuses <= {400, 401, 404, 413, 422, 429}


def _job_in(client: httpx.Client, state: str) -> dict[str, Any] | None:
    answer = client.get(f"/api/v1/jobs/by-name/{JOB}")
    is_so = answer.status_code == 200 and answer.json()["state"] == state
    return answer.json() if is_so else None
