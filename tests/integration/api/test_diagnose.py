"""Files given to a real server: who may, how large they may be, and what comes back."""

from __future__ import annotations

import contextlib
import http.client

import httpx
import pytest
from tests.support import left_behind, waiting
from tests.support.running_server import RunningServer

from hangwatch_server.api.envelope import MAX_BODY_BYTES, UPLOAD_BYTES

pytestmark = pytest.mark.integration
URL = "/api/v1/diagnose"


def parts() -> list[tuple[str, tuple[str, bytes]]]:
    return [("files", (file.name, file.data)) for file in left_behind.dumps()]


def test_files_are_diagnosed_and_not_kept(admin: httpx.Client) -> None:
    before = admin.get("/api/v1/incidents").json()["items"]

    report = admin.post(URL, files=parts()).json()

    assert report["jobs"][0]["verdict"]["culprit_ranks"] == "2"
    assert [row["kind"] for row in report["files"]] == ["flight recorder"] * 4
    assert admin.get("/api/v1/incidents").json()["items"] == before


def test_a_reader_is_told_which_token_it_takes(api_server: RunningServer) -> None:
    with api_server.client(api_server.new_token("read")) as reader:
        answer = reader.post(URL, files=parts())

    assert answer.status_code == 403
    assert "hangwatch diagnose FILE" in answer.json()["detail"]


def test_nobody_is_asked_for_a_token_before_the_files_are_read(api_server: RunningServer) -> None:
    with api_server.client("") as nobody:
        assert nobody.post(URL, files=parts()).status_code == 401
        assert nobody.post("/offline", files=parts()).status_code == 401


def test_files_may_be_larger_than_other_requests_and_not_without_end(admin: httpx.Client) -> None:
    large = b"x" * (MAX_BODY_BYTES + 1)

    fits = admin.post(URL, files=[("files", ("rank_0", large))])
    stated = _answer_to_a_stated_length(admin, UPLOAD_BYTES + 1)

    assert fits.status_code == 200
    assert "text of no kind" in fits.json()["files"][0]["note"]
    assert stated == 413


def _answer_to_a_stated_length(admin: httpx.Client, size: int) -> int:
    """The status that a request gets by its head alone: nothing of its body is sent."""
    with contextlib.closing(_opened(admin, size)) as connection:
        return connection.getresponse().status


def _opened(admin: httpx.Client, size: int) -> http.client.HTTPConnection:
    """A request of which the head is sent."""
    connection = http.client.HTTPConnection(
        str(admin.base_url.host), admin.base_url.port, timeout=60
    )
    connection.putrequest("POST", URL)
    connection.putheader("authorization", admin.headers["authorization"])
    connection.putheader("content-type", "multipart/form-data; boundary=files")
    connection.putheader("content-length", str(size))
    connection.endheaders()
    return connection


def test_a_body_that_is_no_form_is_explained(admin: httpx.Client) -> None:
    answer = admin.post(URL, json={"files": []})

    assert answer.status_code == 400
    assert "no file came" in answer.json()["detail"]


def test_whoever_has_to_wait_for_a_turn_is_told_before_the_files_travel(
    api_server: RunningServer, admin: httpx.Client
) -> None:
    with contextlib.closing(_opened(admin, 1000)) as slow:
        slow.send(b"--files\r\n")
        told = waiting.until(lambda: _if_busy(admin), 60, "the turn is taken")
        status = _answer_to_a_stated_length(admin, 1000)
    waiting.until(
        lambda: admin.post(URL, files=parts()).status_code == 200, 60, "the turn is free again"
    )

    assert "other files are being read" in told.json()["detail"]
    assert status == 409


def test_a_browser_too_is_told_so_before_its_files_travel(
    api_server: RunningServer, admin: httpx.Client
) -> None:
    """The text against forgery comes in the same form: it is no reason to read all of it."""
    with api_server.client("") as browser, contextlib.closing(_opened(admin, 1000)) as slow:
        browser.post("/login", data={"token": api_server.admin_token})
        slow.send(b"--files\r\n")
        waiting.until(lambda: _if_busy(admin), 60, "the turn is taken")
        busy = _page_by_its_head(browser)
    with api_server.client("") as browser:
        browser.post("/login", data={"token": api_server.new_token("read")})
        refused = _page_by_its_head(browser)

    assert (busy, refused) == (409, 403)


def _page_by_its_head(browser: httpx.Client) -> int:
    """The status of a form of the offline page of which no file is sent."""
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
    host, port = browser.base_url.host, browser.base_url.port
    connection = http.client.HTTPConnection(str(host), port, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest("POST", "/offline")
        connection.putheader("cookie", cookies)
        connection.putheader("origin", f"http://{host}:{port}")
        connection.putheader("accept", "text/html")
        connection.putheader("content-type", "multipart/form-data; boundary=files")
        connection.putheader("content-length", "1000")
        connection.endheaders()
        return connection.getresponse().status


def _if_busy(admin: httpx.Client) -> httpx.Response | None:
    answer = admin.post(URL, files=[("files", ("x", b""))])
    return answer if answer.status_code == 409 else None
