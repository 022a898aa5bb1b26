"""Spans of requests and diagnoses for OpenTelemetry, where somebody collects them; else nothing.

On when OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT) is set and the extra `otel` is installed.
Every other OTEL_* variable means what OpenTelemetry says it does. Off, a span costs one comparison.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import hangwatch_server
from hangwatch_server import logs

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
Attribute = str | int | float | bool
Note = Callable[[str, Attribute], None]

_log = logs.get()
_tracer: Tracer | None = None


def _no_note(_name: str, _value: Attribute) -> None:
    """Of a span that nobody collects."""


_OFF: AbstractContextManager[Note] = contextlib.nullcontext(_no_note)


def is_wanted(environ: Mapping[str, str]) -> bool:
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not is_off and any(environ.get(name) for name in ENDPOINTS)


@contextlib.contextmanager
def collecting(environ: Mapping[str, str]) -> Iterator[None]:
    """Send spans from here on, the last of them at the end, where the environment asks for it."""
    global _tracer
    if not is_wanted(environ):
        yield
        return
    if importlib.util.find_spec("opentelemetry.exporter") is None:
        _log.warning("traces_not_sent", why="pip install 'hangwatch[otel]'")
        yield
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    with _provided(OTLPSpanExporter()) as _tracer:
        try:
            yield
        finally:
            _tracer = None


@contextlib.contextmanager
def _provided(exporter: SpanExporter) -> Iterator[Tracer]:
    from opentelemetry.sdk.resources import (
        SERVICE_NAME,
        SERVICE_VERSION,
        OTELResourceDetector,
        Resource,
    )
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over these.
    own = {SERVICE_NAME: "hangwatch-server", SERVICE_VERSION: hangwatch_server.__version__}
    resource = Resource.create(own).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _log.info("traces_sent", endpoint=getattr(exporter, "_endpoint", ""))
    try:
        yield provider.get_tracer("hangwatch_server", hangwatch_server.__version__)
    finally:
        provider.shutdown()


def span(name: str, **attributes: Attribute) -> AbstractContextManager[Note]:
    """Time what happens inside; the value notes more of it, also its status by `http…` names."""
    return _OFF if _tracer is None else _span(_tracer, name, attributes, {})


def request(method: str, headers: Mapping[str, str]) -> AbstractContextManager[Note]:
    """The span of one HTTP request, part of the caller's trace where `traceparent` names one."""
    if _tracer is None:
        return _OFF
    return _span(_tracer, method, {"http.request.method": method}, headers)


def trace_id() -> str:
    """Of the span around this code; "" when there is none."""
    if _tracer is None:
        return ""
    from opentelemetry import trace

    found = trace.get_current_span().get_span_context()
    return f"{found.trace_id:032x}" if found.is_valid else ""


@contextlib.contextmanager
def _span(
    tracer: Tracer, name: str, attributes: Mapping[str, Attribute], headers: Mapping[str, str]
) -> Iterator[Note]:
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = TraceContextTextMapPropagator().extract(dict(headers)) if headers else None
    kind = SpanKind.SERVER if headers else SpanKind.INTERNAL
    with tracer.start_as_current_span(
        name, context=parent, kind=kind, attributes=dict(attributes)
    ) as current:

        def note(key: str, value: Attribute) -> None:
            if key == "name":
                current.update_name(str(value))
            else:
                current.set_attribute(key, value)

        yield note
