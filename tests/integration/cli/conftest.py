"""One server process for all tests of the command line, and a way to run commands against it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from tests.support import running_server, synthetic_agent, waiting
from tests.support.running_server import RunningServer

COMMAND_TIMEOUT_S = 180
Hangwatch = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def cli_server(migrated: str) -> Iterator[RunningServer]:
    with running_server.on_fresh_database(migrated) as server:
        yield server


@pytest.fixture(scope="session")
def hangwatch(cli_server: RunningServer) -> Hangwatch:
    """Run `hangwatch ARGUMENTS` as an administrator of that server; `environ` adds or overrides."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        own = {"HANGWATCH_SERVER": cli_server.url, "HANGWATCH_TOKEN": cli_server.admin_token}
        return subprocess.run(
            [*running_server.hangwatch(), *arguments],
            env={**os.environ, **own, **environ},
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def live_job(cli_server: RunningServer) -> Iterator[str]:
    """Name of a job of two synthetic ranks that is healthy."""
    token = cli_server.new_token("agent", "node-cli")
    with (
        synthetic_agent.beating(cli_server.url, token, "node-cli") as agent,
        cli_server.client() as client,
    ):

        def is_healthy() -> bool:
            answer = client.get(f"/api/v1/jobs/by-name/{agent.launch.name}")
            return answer.status_code == 200 and answer.json()["state"] == "healthy"

        waiting.until(is_healthy, 90, "the synthetic job is healthy")
        yield agent.launch.name
