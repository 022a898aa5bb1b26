"""`hangwatch serve` as a process: its first words, what it refuses, and how quickly it stops."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.cli.conftest import Hangwatch
from tests.support import postgres as databases
from tests.support import running_server, synthetic_agent
from tests.support.running_server import RunningServer

pytestmark = pytest.mark.integration


@pytest.fixture
def folder() -> Iterator[Path]:
    with databases.data_folder() as path:
        yield path


def test_a_port_in_use_is_said_with_the_next_command(hangwatch: Hangwatch, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = hangwatch("serve", "--port", str(port), "--data-dir", str(folder))

    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr
    assert "--port" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_host_that_is_not_this_machine_is_said(hangwatch: Hangwatch, folder: Path) -> None:
    done = hangwatch("serve", "--host", "192.0.2.1", "--port", "0", "--data-dir", str(folder))

    assert done.returncode == 2
    assert "no address of this machine" in done.stderr


def test_an_unreachable_database_is_said_with_the_next_command(
    hangwatch: Hangwatch, folder: Path
) -> None:
    url = "postgresql://me:secret@127.0.0.1:1/hangwatch"
    done = hangwatch("serve", "--port", "0", "--data-dir", str(folder), "--database-url", url)

    assert done.returncode == 2
    assert "pg_isready -d 'postgresql://me:***@127.0.0.1:1/hangwatch'" in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_anonymous_reading_is_refused_on_a_network_address(
    hangwatch: Hangwatch, folder: Path
) -> None:
    arguments = ("serve", "--host", "0.0.0.0", "--port", "0", "--data-dir", str(folder))  # noqa: S104 - it is refused
    done = hangwatch(*arguments, "--allow-anonymous")

    assert done.returncode == 2
    assert "--host 127.0.0.1" in done.stderr


def test_a_reload_changes_nothing_where_there_is_no_certificate(
    database_url: str, folder: Path
) -> None:
    with running_server.running(database_url, folder) as server:
        server.process.send_signal(signal.SIGHUP)

        with server.client() as client:
            assert client.get("/readyz").status_code == 200
        assert server.process.poll() is None


def test_a_second_server_on_the_same_data_folder_is_refused(
    hangwatch: Hangwatch, folder: Path
) -> None:
    with running_server.running("", folder) as first:
        done = hangwatch("serve", "--port", "0", "--data-dir", str(folder))

        assert done.returncode == 2
        assert "in use by another Hangwatch server" in done.stderr
        with first.client() as client:
            assert client.get("/readyz").status_code == 200


def test_the_first_start_prints_a_token_and_the_next_start_does_not(
    database_url: str, folder: Path
) -> None:
    with running_server.running(database_url, folder) as first, first.client() as client:
        token = first.admin_token
        assert client.get("/api/v1/tokens").status_code == 200
    with running_server.running(database_url, folder) as second, second.client(token) as client:
        assert second.admin_token == ""
        assert client.get("/api/v1/tokens").status_code == 200


def test_a_given_bootstrap_token_is_an_admin_and_is_not_printed(
    database_url: str, folder: Path
) -> None:
    given = {"HANGWATCH_BOOTSTRAP_TOKEN": "a-text-that-the-operator-chose"}
    with running_server.running(database_url, folder, given) as server:
        assert server.admin_token == ""
        with server.client(given["HANGWATCH_BOOTSTRAP_TOKEN"]) as client:
            assert client.get("/api/v1/tokens").status_code == 200


def test_a_short_bootstrap_token_is_refused(
    hangwatch: Hangwatch, database_url: str, folder: Path
) -> None:
    arguments = ("serve", "--port", "0", "--data-dir", str(folder))
    done = hangwatch(
        *arguments, HANGWATCH_DATABASE_URL=database_url, HANGWATCH_BOOTSTRAP_TOKEN="ab"
    )

    assert done.returncode == 2
    assert "openssl rand" in done.stderr


def test_anonymous_reading_on_loopback_reads_and_does_nothing_else(
    database_url: str, folder: Path
) -> None:
    settings = {"HANGWATCH_ALLOW_ANONYMOUS": "true"}
    with (
        running_server.running(database_url, folder, settings) as server,
        server.client("") as nobody,
    ):
        assert nobody.get("/api/v1/jobs").status_code == 200
        assert nobody.get("/", headers={"accept": "text/html"}).status_code == 200
        assert nobody.post("/api/v1/jobs/x/captures", json={}).status_code == 403
        assert nobody.get("/api/v1/tokens").status_code == 403
        rebound = nobody.get("/api/v1/jobs", headers={"host": "evil.example"})
        assert rebound.status_code == 401


def test_a_stop_ends_streams_polls_and_agents_in_good_order(
    database_url: str, folder: Path
) -> None:
    with running_server.running(database_url, folder) as server:
        token = server.new_token("agent", "node-stop")
        with synthetic_agent.beating(server.url, token, "node-stop"):
            started, answers = threading.Event(), list[int]()
            watcher = threading.Thread(target=_watch, args=(server, started, answers))
            watcher.start()
            assert started.wait(90)

            code = server.stop()
            watcher.join(90)

    assert code == 0
    assert answers == [200]


def _watch(server: RunningServer, started: threading.Event, answers: list[int]) -> None:
    """Hold an event stream open until the server ends it."""
    with (
        server.client() as client,
        client.stream("GET", "/api/v1/events", timeout=httpx.Timeout(90)) as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        started.set()
        for _ in lines:
            continue
        answers.append(stream.status_code)
