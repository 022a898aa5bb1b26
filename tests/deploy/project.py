"""Brings a compose file up without an engine: its order, its health checks, its restarts.

One thread per service does what the engine's daemon does for one container.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.deploy import compose, images, publish
from tests.deploy.box import Box, Started
from tests.deploy.compose import Health, Service
from tests.deploy.wires import Wires
from tests.support.waiting import until

POLL_S = 0.1
RESTART_S = 1.0
STARTED, HEALTHY, COMPLETED = (
    "service_started",
    "service_healthy",
    "service_completed_successfully",
)


class Container:
    """One service: what has become of it, and the thread that sees to it."""

    def __init__(self, box: Box, containers: Mapping[str, Container]) -> None:
        self.box = box
        self.started: Started | None = None
        self.reached: list[str] = []  # the conditions of this run of it
        self.starts: list[float] = []  # monotonic seconds
        self.went_well_at_s: dict[str, float] = {}  # condition -> when it was first reached
        self.failure = ""
        self._containers = containers
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._live, name=self.service.name)

    @property
    def service(self) -> Service:
        return self.box.service

    @property
    def pid(self) -> int:
        assert self.started is not None, f"{self.service.name} has not started"
        return self.started.pid

    @property
    def is_up(self) -> bool:
        """As `docker compose up --wait` waits for it."""
        if not self.service.is_restarted and self.service.health is None:
            return COMPLETED in self.reached or self._is_running()
        return (HEALTHY if self.service.health else STARTED) in self.reached

    def begin(self) -> None:
        self._thread.start()

    def run(self, *command: str, timeout_s: float = 30.0) -> subprocess.CompletedProcess[str]:
        """`docker compose exec SERVICE COMMAND`."""
        return subprocess.run(
            self.box.inside(self.pid, *command),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def kill(self) -> None:
        """As a crash would; what restarts it is its policy."""
        assert self.started is not None
        self.started.kill(signal.SIGKILL)

    def stop(self) -> None:
        """`docker compose restart`: it is asked to end, and starts again by its policy."""
        assert self.started is not None
        self.started.kill(signal.SIGTERM)

    def end(self) -> None:
        """Begin to; its thread, which may be starting it at this moment, sees to it."""
        self._is_ending.set()

    def join(self) -> None:
        self._thread.join()

    def tail(self, lines: int = 30) -> str:
        text = self.box.log.read_text(errors="replace") if self.box.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _is_running(self) -> bool:
        return self.started is not None and self.started.exit_code() is None

    def _live(self) -> None:
        try:
            while not self._may_start():
                if self._is_ending.wait(POLL_S):
                    return
            while not self._is_ending.is_set():
                self._one_run()
                if not self.service.is_restarted or self._is_ending.wait(RESTART_S):
                    return
        except Exception as error:  # the end of a thread: the test that waits says it
            self.failure = f"{type(error).__name__}: {error}"

    def _may_start(self) -> bool:
        wanted = dict(self.service.depends_on)
        return all(
            condition in self._containers[name].reached for name, condition in wanted.items()
        )

    def _one_run(self) -> None:
        self.reached.clear()
        shared = self._containers.get(self.service.pid_of)
        self.started = self.box.start(
            shared.started.pid_namespace if shared and shared.started else None
        )
        self.starts.append(time.monotonic())
        self._reach(STARTED)
        code = self._follow(self.started)
        self.reached.clear()
        if code == 0:
            self._reach(COMPLETED)
        elif not self.service.is_restarted and not self._is_ending.is_set():
            self.failure = f"exit code {code}"

    def _follow(self, started: Started) -> int:
        """Check its health until it ends, and kill it when that is asked for; its exit code."""
        checks = Checks(self.service.health) if self.service.health else None
        while (code := started.exit_code()) is None:
            if self._is_ending.wait(POLL_S):
                started.kill(signal.SIGKILL)
                time.sleep(POLL_S)
            elif checks is not None and checks.is_due():
                with contextlib.suppress(ProcessLookupError):
                    self._heed(checks, checks.look(self.box.inside(started.pid, *checks.test)))
        return code

    def _heed(self, checks: Checks, is_well: bool) -> None:
        if is_well and HEALTHY not in self.reached:
            self._reach(HEALTHY)
        elif checks.has_failed and HEALTHY in self.reached:
            self.reached.remove(HEALTHY)

    def _reach(self, condition: str) -> None:
        self.reached.append(condition)
        self.went_well_at_s.setdefault(condition, time.monotonic())


class Checks:
    """The health check of one run of a service, by the file's interval and patience."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._begun_s = time.monotonic()
        self._next_s = self._begun_s + health.interval_s
        self._failures = 0

    @property
    def test(self) -> tuple[str, ...]:
        return self._health.test

    @property
    def has_failed(self) -> bool:
        return self._failures >= self._health.retries

    def is_due(self) -> bool:
        return time.monotonic() >= self._next_s

    def look(self, command: list[str]) -> bool:
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=self._health.timeout_s, check=False
            )
            is_well = done.returncode == 0
        except subprocess.TimeoutExpired:
            is_well = False
        now_s = time.monotonic()
        self._next_s = now_s + self._health.interval_s
        is_beginning = now_s - self._begun_s < self._health.start_period_s
        self._failures = 0 if is_well else self._failures + (not is_beginning)
        return is_well


class Up:
    """A project that is up, or on its way."""

    def __init__(self, folder: Path, project: compose.Project) -> None:
        self._wires = Wires(project)
        self.containers: dict[str, Container] = {}
        for name, service in project.services.items():
            namespace = self._wires.namespaces[name].path
            secrets = {key: project.secrets[key] for key in service.secrets}
            box = Box(service, folder, namespace, self._wires.hosts(name), secrets)
            self.containers[name] = Container(box, self.containers)
        self._publishers = list(self._published(project))

    def wait(self, timeout_s: float) -> None:
        """`docker compose up --wait`; fails with the log of what failed."""

        def is_decided() -> bool:
            containers = self.containers.values()
            return any(one.failure for one in containers) or all(one.is_up for one in containers)

        with contextlib.suppress(AssertionError):
            until(is_decided, timeout_s, "everything is up")
        failed = [
            f"{name}: {container.failure or 'not up'}\n{container.tail()}"
            for name, container in self.containers.items()
            if container.failure or not container.is_up
        ]
        assert not failed, "\n\n".join(failed)

    def begin(self) -> None:
        for container in self.containers.values():
            container.begin()

    def addresses(self) -> dict[str, list[str]]:
        """Of each service, one on each of its networks."""
        return self._wires.addresses()

    def down(self) -> None:
        for container in self.containers.values():
            container.end()
        for container in self.containers.values():
            container.join()
        for publisher in self._publishers:
            publisher.kill()
            publisher.wait()
        self._wires.close()

    def _published(self, project: compose.Project) -> Iterator[subprocess.Popen[bytes]]:
        """What an engine's own proxy does: a port outside leads to one in the namespace."""
        for name, service in project.services.items():
            for address, outside, inside in service.ports:
                listener = publish.listener(address, outside)
                with listener:
                    yield publish.start(listener, self._wires.namespaces[name].path, inside)


@contextlib.contextmanager
def up(folder: Path, variables: Mapping[str, str], profiles: tuple[str, ...]) -> Iterator[Up]:
    """The repository's own file, with secrets as its script makes them, until the test is over."""
    project = compose.read(images.ROOT / "docker-compose.yml", variables, profiles)
    running = Up(folder, project)
    try:
        running.begin()
        yield running
    finally:
        running.down()
