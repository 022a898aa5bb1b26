"""`hangwatch ready` against servers that answer as ours does, and against none."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from hangwatch_server import ready
from hangwatch_server.settings import ServerSettings

READY = {"status": "ready", "database": "ok", "redis": "off", "background": "ok"}


@contextlib.contextmanager
def answering(status: int, body: bytes) -> Iterator[int]:
    """The port of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/readyz"
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def said(status: int, body: bytes, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with answering(status, body) as port:
        # As in a container: it listens everywhere, and is asked over loopback.
        code = ready.run(ServerSettings(host="0.0.0.0", port=port))  # noqa: S104
    return code, capsys.readouterr().out


def test_ready_server_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(200, json.dumps(READY).encode(), capsys) == (0, "ready\n")


def test_degraded_server_is_ready_and_says_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = READY | {"status": "degraded", "redis": "no answer"}

    code, text = said(200, json.dumps(body).encode(), capsys)

    assert (code, text) == (0, "degraded; redis: no answer\n")


def test_server_without_its_database_is_not_ready(capsys: pytest.CaptureFixture[str]) -> None:
    body = READY | {"status": "not ready", "database": "no answer within 3 s"}

    code, text = said(503, json.dumps(body).encode(), capsys)

    assert (code, text) == (1, "not ready; database: no answer within 3 s\n")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff", b"{}"])
def test_answer_of_something_else_is_judged_by_its_status(
    body: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(502, body, capsys) == (1, "status 502\n")


def test_nobody_there_is_not_ready(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, b"{}") as port:
        pass

    code = ready.run(ServerSettings(port=port))

    assert code == 1
    assert capsys.readouterr().out.startswith(f"not ready: no answer on port {port}: ")


def test_plain_server_is_not_ready_where_the_settings_say_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(200, b"{}") as port:
        code = ready.run(ServerSettings(port=port, tls_cert=tmp_path / "cert.pem"))

    assert code == 1
    assert "no answer" in capsys.readouterr().out
