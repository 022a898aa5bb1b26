"""Requests made by hand to do harm: refused in words or closed, and nobody else notices."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.support import raw_http
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration

HOST = b"Host: 127.0.0.1\r\n"


def get(path: bytes, *headers: bytes) -> bytes:
    ends = b"Connection: close\r\n"
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + ends + b"".join(headers) + b"\r\n"


def resident_mib(server: RunningServer) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    row = next(row for row in status.splitlines() if row.startswith("VmRSS:"))
    return int(row.split()[1]) / 1024


HIDDEN = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SMUGGLED = {
    "length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "two lengths": b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + HIDDEN,
    "a length that is none": b"Content-Length: +4\r\n\r\nabcd" + HIDDEN,
    "a negative length": b"Content-Length: -1\r\n\r\n" + HIDDEN,
    "chunked twice": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    "an endless chunk": b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n" + HIDDEN,
    "a chunk of no number": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + HIDDEN,
    "a space before the colon": b"Content-Length : 0\r\n\r\n" + HIDDEN,
    "a folded header": b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
    "a bare line end": b"X: a\nContent-Length: 0\r\n\r\n" + HIDDEN,
    "a NUL in a header": b"X: a\0b\r\n\r\n" + HIDDEN,
}


@pytest.mark.parametrize("form", SMUGGLED)
def test_a_request_whose_end_is_in_doubt_hides_no_second_one(
    server: RunningServer, form: str
) -> None:
    request = b"POST /api/v1/agent/enrol HTTP/1.1\r\n" + HOST + SMUGGLED[form]

    answer = raw_http.exchange(server.url, request)

    assert raw_http.statuses(answer)[:1] == [400]
    assert b"smuggled" not in answer
    assert len(raw_http.statuses(answer)) == 1


@pytest.mark.parametrize(
    "head",
    [
        get(b"/", b"X: " + b"a" * 200_000 + b"\r\n"),
        get(b"/", *[b"X%d: a\r\n" % number for number in range(20_000)]),
        get(b"/" + b"a" * 200_000),
        b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 30_000,
    ],
    ids=["one header", "many headers", "address", "no end"],
)
def test_a_head_that_is_too_large_is_refused_before_it_ends(
    server: RunningServer, unharmed: Callable[[], None], head: bytes
) -> None:
    answer = raw_http.exchange(server.url, head)

    assert raw_http.statuses(answer) in ([431], [400], [])
    assert b"200 OK" not in answer
    unharmed()


@pytest.mark.parametrize(
    "request_",
    [b"\x16\x03\x01\x02\x00\x01", b"\0" * 1000, b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
     b"GET http://evil.example/ HTTP/1.1\r\n" + HOST + b"\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n"],
    ids=["tls", "nul", "no address", "http2", "proxy", "connect"],
)  # fmt: skip
def test_what_is_no_request_of_ours_gets_no_page(server: RunningServer, request_: bytes) -> None:
    answer = raw_http.exchange(server.url, request_)

    assert all(status >= 300 for status in raw_http.statuses(answer))


TRAVERSALS = [
    "/static/../../../../etc/passwd",
    "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/vendor/..%5c..%5c..%5cetc%5cpasswd",
    "/vendor//etc/passwd",
    "/static/%00/etc/passwd",
    "/api/v1/captures/..%2f..%2f..%2fetc%2fpasswd",
    "/api/v1/captures/%2fetc%2fpasswd.txt",
    "/captures/..%2f..%2fetc%2fpasswd.txt",
    "/api/v1/incidents/..%2f..%2f..%2fetc%2fpasswd/bundle.zip",
    "/incidents/%2e%2e/bundle.zip",
    "/api/v1/jobs/by-name/..%2f..%2f..%2fetc%2fpasswd",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_address_leads_out_of_its_folder(server: RunningServer, path: str) -> None:
    token = f"Authorization: Bearer {server.admin_token}\r\n".encode()

    answer = raw_http.exchange(server.url, get(path.encode(), token))

    assert raw_http.statuses(answer)[0] in (400, 404)
    assert b"root:" not in answer


def _upload(client: httpx.Client, name: str, data: bytes) -> httpx.Response:
    return client.post("/api/v1/diagnose", files={"files": (name, data)})


def _zip_bomb() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"{number}.json", b"[" * 5_000_000)
    return held.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {
    "rank0.json.gz": lambda: gzip.compress(b"[" * 300_000_000, 1),
    "dumps.zip": _zip_bomb,
    "deep.json": lambda: b'{"a":' * 3_000_000,
    "wide.json": lambda: b"[" + b"{}," * 500_000 + b"{}]",
    "numbers.json": lambda: b'{"rank": ' + b"9" * 5_000_000 + b"}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_made_to_blow_up_costs_its_sender_an_answer_and_nobody_else_anything(
    server: RunningServer, unharmed: Callable[[], None], name: str
) -> None:
    data = BOMBS[name]()
    with server.client() as client:
        _upload(client, "warm.json", b"{}")
        before_mib = resident_mib(server)

        answer = _upload(client, name, data)

    assert answer.status_code in (200, 400, 413, 422)
    assert resident_mib(server) - before_mib < 400
    unharmed()


def test_a_packed_body_is_not_unpacked(server: RunningServer) -> None:
    packed = gzip.compress(json.dumps({"name": "x", "scopes": ["read"]}).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    with server.client() as client:
        answer = client.post("/api/v1/tokens", content=packed, headers=headers)

    assert answer.status_code in (400, 422)


def test_hundreds_of_half_requests_keep_nobody_out(
    server: RunningServer, unharmed: Callable[[], None]
) -> None:
    beginnings = [b"", b"GET / HTT", get(b"/")[:-2], b"POST /login HTTP/1.1\r\n" + HOST +
                  b"Content-Length: 1000\r\n\r\nto"]  # fmt: skip
    lines = []
    try:
        for number in range(400):
            context = raw_http.connected(server.url)
            lines.append((context, context.__enter__()))
            lines[-1][1].sendall(beginnings[number % len(beginnings)])
        with server.client() as client:
            assert client.get("/api/v1/jobs").status_code == 200
        unharmed()
    finally:
        for context, _ in lines:
            context.__exit__(None, None, None)
