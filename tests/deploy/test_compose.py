"""docker-compose.yml as it is, brought up without an engine: the same processes in the same order,
as the same users, with the same environment, secrets, networks and health checks.

What an image's maker did is not tried here, and the programs of others are this machine's.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.deploy import images, project
from tests.deploy.project import COMPLETED, HEALTHY, STARTED, Container, Up
from tests.support.waiting import until

from hangwatch_agent.client import Client
from hangwatch_server.demo.stage import free_port

SECRETS = images.ROOT / "deploy" / "compose" / "secrets.sh"
UP_S, VERDICT_S, AGAIN_S = 180.0, 120.0, 90.0
NODES = {"demo-a", "demo-b"}
CAPABILITIES = {
    "SYS_PTRACE": 19, "DAC_OVERRIDE": 1, "SYS_CHROOT": 18, "SETUID": 7, "SETGID": 6, "KILL": 5,
}  # fmt: skip


def _obstacle() -> str:
    if os.geteuid() != 0:
        return "namespaces and mounts are for root"
    tried = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    if tried.returncode:
        return f"no namespaces here: {tried.stderr.decode().strip()}"
    lacking = images.missing()
    return f"tests/support/packages.sh installs {', '.join(lacking)}" if lacking else ""


OBSTACLE = _obstacle()
pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)]


@dataclass(frozen=True, slots=True)
class Stack:
    """All services, and what a person outside has of them: an address and a token."""

    up: Up
    url: str
    token: str

    @property
    def client(self) -> Client:
        return Client(self.url, self.token)

    def http(self) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=20, trust_env=False)

    def links(self) -> dict[str, str]:
        return {node["name"]: node["link"] for node in self.client.get("/nodes")["items"]}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    folder = Path(tempfile.mkdtemp(prefix="hangwatch-test-"))
    port = free_port()
    variables = {
        "HANGWATCH_PUBLISH": f"127.0.0.1:{port}",
        "HANGWATCH_SECRETS": str(folder / "secrets"),
    }
    try:
        subprocess.run([SECRETS, folder / "secrets"], check=True)
        token = (folder / "secrets" / "bootstrap_token").read_text().strip()
        with project.up(folder, variables, ("demo",)) as running:
            running.wait(UP_S)
            yield Stack(running, f"http://127.0.0.1:{port}", token)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def hung(stack: Stack) -> dict[str, Any]:
    """The demo's job once it is confirmed, as the API behind the proxy tells it."""

    def found() -> dict[str, Any] | None:
        jobs = stack.client.get("/jobs", q="demo")["items"]
        return next((job for job in jobs if job["verdict"]["state"] == "hung"), None)

    return until(found, VERDICT_S, "the demo's job is hung")


def status_of(stack: Stack, name: str) -> dict[str, str]:
    """What the kernel says of the first process of a service."""
    text = Path(f"/proc/{stack.up.containers[name].pid}/status").read_text()
    return {key: value.strip() for key, _, value in (s.partition(":") for s in text.splitlines())}


def test_nothing_starts_before_what_it_depends_on(stack: Stack) -> None:
    containers = stack.up.containers
    pairs = [
        (containers[other].went_well_at_s[condition], container.starts[0])
        for container in containers.values()
        for other, condition in container.service.depends_on.items()
    ]

    assert len(pairs) >= 12
    assert all(reached_s <= started_s for reached_s, started_s in pairs)
    assert {c for one in containers.values() for c in one.service.depends_on.values()} == {
        STARTED, HEALTHY, COMPLETED,
    }  # fmt: skip


def test_everything_came_up_at_the_first_try(stack: Stack) -> None:
    assert {name: len(one.starts) for name, one in stack.up.containers.items()} == dict.fromkeys(
        stack.up.containers, 1
    )


@pytest.mark.parametrize("name", ["server-1", "server-2", "job-a", "job-b", "postgres", "redis"])
def test_service_runs_as_a_user_without_any_power(stack: Stack, name: str) -> None:
    status = status_of(stack, name)

    assert "0" not in status["Uid"].split()
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"] == "1"


@pytest.mark.parametrize("name", ["agent-a", "agent-b"])
def test_agent_is_root_with_the_capabilities_of_the_table_alone(stack: Stack, name: str) -> None:
    status = status_of(stack, name)

    assert int(status["CapEff"], 16) == sum(1 << number for number in CAPABILITIES.values())
    assert set(stack.up.containers[name].service.capabilities) == set(CAPABILITIES)
    assert status["NoNewPrivs"] == "1"


def test_no_environment_holds_a_secret(stack: Stack) -> None:
    folder = next(iter(stack.up.containers["server-1"].box.secrets.values())).parent
    texts = [path.read_bytes().strip() for path in folder.iterdir()]

    for container in stack.up.containers.values():
        if container.service.target and container.started.exit_code() is None:
            environment = Path(f"/proc/{container.pid}/environ").read_bytes()
            assert b"PATH=" in environment
            assert not [text for text in texts if text in environment]


@pytest.mark.parametrize(
    ("name", "reaches"),
    [
        ("server-1", {"postgres", "redis", "server-2", "proxy"}),
        ("agent-a", {"proxy"}),
        ("proxy", {"server-1", "server-2"}),
    ],
)
def test_service_reaches_those_on_its_networks_alone(
    stack: Stack, name: str, reaches: set[str]
) -> None:
    ports = {"postgres": 5432, "redis": 6379, "server-1": 8042, "server-2": 8042, "proxy": 8042}
    addresses = stack.up.addresses()
    program = (
        "import json, socket, sys\n"
        "for name, host, port in json.loads(sys.argv[1]):\n"
        "    try: socket.create_connection((host, port), 2).close(); print(name)\n"
        "    except OSError: pass"
    )
    wanted = [
        (other, address, port)
        for other, port in ports.items()
        if other != name
        for address in addresses[other]
    ]

    done = stack.up.containers[name].run("python3", "-c", program, json.dumps(wanted))

    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == reaches


def test_redis_opens_nothing_but_channels_to_whoever_has_its_password(stack: Stack) -> None:
    redis = stack.up.containers["redis"]
    # Beside the files that are mounted, and for nobody but the script that makes those.
    password = redis.box.secrets["redis_config"].with_name("redis_password").read_text().strip()

    def said(*words: str) -> str:
        return redis.run("redis-cli", "--no-auth-warning", "-a", password, *words).stdout

    assert said("PUBLISH", "channel-of-a-test", "x").strip() == "0"
    for words in (("CONFIG", "GET", "*"), ("SET", "a", "b"), ("KEYS", "*"), ("CLIENT", "LIST")):
        assert "NOPERM" in said(*words)
    assert "NOAUTH" in redis.run("redis-cli", "PUBLISH", "channel-of-a-test", "x").stdout


def test_demo_gets_its_verdict_through_the_proxy(stack: Stack, hung: dict[str, Any]) -> None:
    verdict = hung["verdict"]
    culprits = verdict["culprits"]

    assert verdict["kind"] == "missing_ranks"
    assert [(culprit["rank"], culprit["node"]) for culprit in culprits] == [(1, "demo-a")]
    assert culprits[0]["condition"] == "in_dataloader"
    assert "dataloader_stuck.py" in culprits[0]["where"]
    assert "dataloader_stuck.py" in verdict["summary"]


def test_both_agents_are_linked_through_the_proxy(stack: Stack, hung: dict[str, Any]) -> None:
    assert stack.links() == dict.fromkeys(NODES, "live")
    for node in ("agent-a", "agent-b"):
        # No other way leads to a server from there.
        assert stack.up.containers[node].service.environment["HANGWATCH_SERVER"] == (
            "http://proxy:8042"
        )


def test_event_stream_passes_the_proxy_as_things_happen(stack: Stack, hung: dict[str, Any]) -> None:
    incident = hung["verdict"]["incident"]
    with (
        stack.http() as http,
        http.stream("GET", "/api/v1/events", params={"incident": incident}) as stream,
    ):
        lines = stream.iter_lines()
        assert "event: open" in lines

        stack.client.acknowledge(incident, "seen")

        # The stream is still open: had the proxy kept it back, this line would not be here yet.
        assert "event: incident" in lines


def test_page_of_the_job_passes_the_proxy_with_its_live_stream(
    stack: Stack, hung: dict[str, Any]
) -> None:
    with stack.http() as http:
        page = http.get(f"/jobs/{hung['id']}", headers={"accept": "text/html"})
        asset = http.get("/static/js/live.js")

    assert page.status_code == asset.status_code == 200
    assert "dataloader_stuck.py" in page.text


def test_server_learns_the_true_address_of_whoever_asks(stack: Stack) -> None:
    with stack.http() as http:
        forged = {"x-forwarded-for": "192.0.2.7", "authorization": "Bearer wrong"}
        assert http.get("/api/v1/jobs", headers=forged).status_code == 401

    said = [stack.up.containers[name].tail(400) for name in ("server-1", "server-2")]
    assert not [text for text in said if "192.0.2.7" in text]
    assert [text for text in said if "127.0.0.1" in text]


@contextlib.contextmanager
def looking(stack: Stack, path: str) -> Iterator[list[int]]:
    """Somebody who asks for a page ten times a second; the status of each answer, 0 for none."""
    answers: list[int] = []
    is_over = threading.Event()

    def look() -> None:
        with stack.http() as http:
            while not is_over.wait(0.1):
                try:
                    answers.append(http.get(path).status_code)
                except httpx.TransportError:
                    answers.append(0)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield answers
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize(
    ("name", "end"),
    [("server-1", Container.kill), ("server-2", Container.stop)],
    ids=["killed", "restarted in good order"],
)
def test_server_that_goes_is_missed_by_nobody(
    stack: Stack, hung: dict[str, Any], name: str, end: Callable[[Container], None]
) -> None:
    incident = hung["verdict"]["incident"]
    container = stack.up.containers[name]
    before = len(container.starts)

    with looking(stack, f"/incidents/{incident}") as answers:
        end(container)
        until(lambda: len(container.starts) > before, AGAIN_S, "it starts again")
        until(lambda: HEALTHY in container.reached, AGAIN_S, "it is healthy")
        until(lambda: stack.links() == dict.fromkeys(NODES, "live"), AGAIN_S, "agents are back")

        # Under load its ranks may be unknown for a moment, while the other server learns of them.
        until(lambda: stack.client.job("demo").verdict.state == "hung", AGAIN_S, "it is hung")

    assert len(answers) > 10
    assert set(answers) == {200}
    assert stack.client.job("demo").verdict.incident == incident
    assert len(list(stack.client.incidents(job=hung["id"]))) == 1


def test_database_that_goes_is_told_by_the_servers_and_not_by_the_proxy(stack: Stack) -> None:
    postgres = stack.up.containers["postgres"]
    before = len(postgres.starts)

    with stack.http() as http:
        postgres.kill()
        said = until(
            lambda: (answer := http.get("/readyz")).status_code == 503 and answer.json(), 30, "said"
        )
        page = http.get("/login")
        until(lambda: len(postgres.starts) > before, AGAIN_S, "it starts again")
        until(lambda: http.get("/readyz").status_code == 200, AGAIN_S, "all is well")

    assert said["database"] != "ok"
    assert page.status_code == 200


def test_secrets_are_made_once_and_never_alike(tmp_path: Path) -> None:
    def made() -> dict[str, str]:
        return {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}

    subprocess.run([SECRETS, tmp_path / "secrets"], check=True)
    first = made()
    (tmp_path / "secrets" / "bootstrap_token").unlink()
    subprocess.run([SECRETS, tmp_path / "secrets"], check=True)
    second = made()

    assert first.pop("bootstrap_token") != second.pop("bootstrap_token")
    assert first == second
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert secrets.compare_digest(
        first["database_url"].strip(),
        f"postgresql://hangwatch:{first['database_password'].strip()}@postgres/hangwatch",
    )
