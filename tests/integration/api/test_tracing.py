"""Traces of a real server, as a real collector of OpenTelemetry gets them."""

from __future__ import annotations

import pytest
from tests.support import otlp, postgres, running_server, synthetic_agent, waiting

from hangwatch_server import tracing

pytestmark = pytest.mark.integration

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_requests_and_diagnoses_reach_the_collector(migrated: str) -> None:
    with (
        otlp.collecting() as collector,
        postgres.fresh_database(migrated, postgres.TEMPLATE) as url,
        postgres.data_folder() as folder,
        running_server.running(
            url,
            folder,
            {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "200"},
        ) as server,
    ):
        token = server.new_token("agent", "node-traced")
        headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "x-request-id": "run-17"}
        with server.client() as client:
            client.get("/api/v1/jobs/nope", headers=headers)
        with synthetic_agent.beating(server.url, token, "node-traced") as agent:
            agent.is_gone = True
            waiting.until(lambda: collector.named("diagnose"), 60, "a diagnosis was traced")
        server.stop()

        (request,) = collector.named("GET /api/v1/jobs/{job_id}")
        assert request.service == "hangwatch-server"
        assert request.trace_id == TRACE
        assert request.attributes == {
            "http.request.method": "GET",
            "http.route": "/api/v1/jobs/{job_id}",
            "http.response.status_code": "404",
            "hangwatch.request_id": "run-17",
        }
        diagnosis = collector.named("diagnose")[-1]
        assert diagnosis.attributes["ranks"] == "2"
        assert {"job", "kind"} <= set(diagnosis.attributes)


def test_nothing_is_traced_unless_somebody_collects() -> None:
    assert not tracing.is_wanted({})
    assert not tracing.is_wanted(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}
    )
    with tracing.collecting({}):
        assert tracing.span("diagnose") is tracing.span("another")
        assert tracing.trace_id() == ""
