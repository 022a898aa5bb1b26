"""deploy/nginx/hangwatch.conf in front of a real server, with a second one that is dead."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support import running_server, synthetic_agent
from tests.support.certificate import write_certificate
from tests.support.running_server import RunningServer
from tests.support.waiting import until

from hangwatch_server.demo.stage import free_port

FILE = Path(__file__).resolve().parents[3] / "deploy" / "nginx" / "hangwatch.conf"
PROGRAM = shutil.which("nginx", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/sbin")
NODE = "node-behind"
# What its distribution's nginx.conf has round the file, as far as it matters.
ROUND = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {text}
}}
"""
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not PROGRAM, reason="tests/support/packages.sh installs nginx"),
]


@pytest.fixture(scope="module")
def server(migrated: str) -> Iterator[RunningServer]:
    settings = {
        "HANGWATCH_TRUSTED_PROXIES": "127.0.0.1",
        "HANGWATCH_PROXY_USER_HEADER": "X-Forwarded-User",
        "HANGWATCH_ROLES": "admin=*",
    }
    with running_server.on_fresh_database(migrated, settings) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nginx")


@pytest.fixture(scope="module")
def trust(folder: Path) -> ssl.SSLContext:
    write_certificate(folder, 1)
    return ssl.create_default_context(cafile=str(folder / "cert.pem"))


@pytest.fixture(scope="module")
def url(server: RunningServer, folder: Path, trust: ssl.SSLContext) -> Iterator[str]:
    port = free_port()
    text = FILE.read_text()
    for there, here in {
        "10.0.0.11:8042": f"127.0.0.1:{free_port()}",  # nobody listens
        "10.0.0.12:8042": server.url.removeprefix("http://"),
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/nginx/hangwatch.pem": f"{folder}/cert.pem",
        "/etc/nginx/hangwatch.key": f"{folder}/key.pem",
    }.items():
        assert there in text
        text = text.replace(there, here)
    (folder / "nginx.conf").write_text(ROUND.format(folder=folder, text=text))
    process = subprocess.Popen([str(PROGRAM), "-p", folder, "-c", folder / "nginx.conf"])
    try:
        address = f"https://127.0.0.1:{port}"
        until(lambda: _answers(address, trust), 30, "nginx answers")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _answers(address: str, trust: ssl.SSLContext) -> bool:
    try:
        return httpx.get(f"{address}/healthz", verify=trust, trust_env=False).is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def client(url: str, server: RunningServer, trust: ssl.SSLContext) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {server.admin_token}"}
    with httpx.Client(
        base_url=url, headers=headers, verify=trust, timeout=30, trust_env=False
    ) as made:
        yield made


def test_every_request_is_answered_though_one_server_is_dead(client: httpx.Client) -> None:
    assert {client.get("/api/v1/jobs").status_code for _ in range(20)} == {200}


def test_server_knows_that_the_browser_came_by_tls(client: httpx.Client) -> None:
    answer = client.get("/login")

    assert "strict-transport-security" in answer.headers
    signed_in = client.post(
        "/login",
        data={"token": client.headers["authorization"].removeprefix("Bearer ")},
        headers={"origin": str(client.base_url)},
    )
    assert signed_in.status_code == 303
    assert "__Host-" in signed_in.headers["set-cookie"]


def test_nobody_signs_in_by_a_header_of_their_own(
    url: str, server: RunningServer, trust: ssl.SSLContext
) -> None:
    header = {"x-forwarded-user": "mallory", "accept": "text/html"}

    honest = httpx.get(f"{server.url}/login", headers=header, trust_env=False)
    forged = httpx.get(f"{url}/login", headers=header, verify=trust, trust_env=False)

    # Straight from the machine that is believed, it opens the door; nginx drops it.
    assert "set-cookie" in honest.headers
    assert "set-cookie" not in forged.headers
    assert forged.status_code == 200


def test_an_agent_and_an_event_stream_pass_as_things_happen(
    client: httpx.Client, server: RunningServer, url: str, trust: ssl.SSLContext
) -> None:
    token = server.new_token("agent", NODE)
    with client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        assert "event: open" in lines

        with synthetic_agent.beating(url, token, NODE, trust=trust):
            # Nothing ends the stream: this line comes while it is open, or never.
            assert "event: nodes" in lines
            nodes = client.get("/api/v1/nodes").json()["items"]

    assert [(node["name"], node["link"]) for node in nodes] == [(NODE, "live")]
