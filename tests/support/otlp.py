"""A collector of traces that speaks OTLP over HTTP: what it was sent, as plain spans."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True)
class Span:
    name: str
    service: str
    trace_id: str
    attributes: dict[str, str]


@dataclass(slots=True)
class Collector:
    url: str
    spans: list[Span] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        server.collector = collector  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        is_known = self.path == "/v1/traces"
        if is_known:
            self.server.collector.spans += _spans(body)  # type: ignore[attr-defined]
        self.send_response(200 if is_known else 404)
        self.send_header("content-type", "application/x-protobuf")
        self.end_headers()
        self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def log_message(self, *_: object) -> None:
        pass


def _spans(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        own = {item.key: item.value.string_value for item in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                found = {
                    item.key: str(getattr(item.value, str(item.value.WhichOneof("value"))))
                    for item in span.attributes
                }
                yield Span(span.name, own["service.name"], span.trace_id.hex(), found)
