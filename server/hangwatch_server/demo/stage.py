"""A server, two agents and jobs as real processes in one folder; the ground of demo and tests."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any, Protocol

from hangwatch_agent.wire import Depth
from hangwatch_server import assets
from hangwatch_server.demo import processes
from hangwatch_server.demo.cases import Case
from hangwatch_server.errors import HangwatchError

NODES = ("node-a", "node-b")
BARE_NODE = "node-bare"  # its agent takes the ranks that nobody started under `hangwatch run`
PORTS = range(20_000, 30_000)  # below the ephemeral ones, which any connection may take meanwhile
START_TIMEOUT_S = 120.0
POLL_S = 0.1


class Client(Protocol):
    """What the stage asks of a REST client; the agent's own fits."""

    def get(self, path: str, **query: str | int | float | None) -> Any: ...

    def post(self, path: str, body: Mapping[str, object]) -> Any: ...


Connect = Callable[[str, str], Client]


@dataclass(slots=True)
class RunningJob:
    """The launchers of one case's job; `mark` is in the environment of every process of it."""

    case: Case
    name: str
    mark: str
    logs: tuple[Path, ...]
    launchers: list[Popen[bytes]]

    def stop(self) -> None:
        for launcher in self.launchers:
            processes.kill_family(launcher, self.mark)

    def last_progress_s(self) -> float | None:
        """Monotonic seconds of the newest progress line of any rank."""
        marks = [
            float(line.split()[1])
            for log in self.logs
            for line in log.read_text(errors="replace").splitlines()
            if line.startswith("progress ") and len(line.split()) == 2
        ]
        return max(marks, default=None)


@dataclass(slots=True)
class Stage:
    """Everything lies in `folder`; `stop()` ends all that was started."""

    folder: Path
    connect: Connect
    port: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)  # HANGWATCH_* of the server
    admin_token: str = field(default_factory=lambda: f"hw_stage_{secrets.token_urlsafe(24)}")
    server: Popen[bytes] | None = None
    agents: dict[str, Popen[bytes]] = field(default_factory=dict)
    jobs: list[RunningJob] = field(default_factory=list)
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Client:
        return self.connect(self.url, self.admin_token)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def run_dir(self, node: str) -> Path:
        return self.folder / f"run-{node}"

    def start_server(self) -> None:
        """Start the server and wait until it is ready; otherwise raise with the end of its log."""
        self.port = self.port or free_port()
        environment = {
            "HANGWATCH_BOOTSTRAP_TOKEN": self.admin_token,
            "HANGWATCH_ALLOW_ANONYMOUS": "true",
            **self.settings,
        }
        command = [*hangwatch(), "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--data-dir", str(self.folder / "data")]
        self.server = self._start(command, environment, self.log("server"))
        self._wait("server", self.server, self._is_ready)

    def start_agents(self) -> None:
        """Start one agent per node, each with a token that can speak for that node alone."""
        for node in NODES:
            self.start_agent(node)
        self._wait("agents", None, lambda: self._reported() >= set(NODES))

    def start_adopting_agent(self) -> None:
        """Start the agent of the bare jobs, unless it runs: two of them would share each rank."""
        if BARE_NODE not in self.agents:
            self.start_agent(BARE_NODE, "--adopt")
            self._wait("the adopting agent", None, lambda: BARE_NODE in self._reported())

    def start_agent(self, node: str, *options: str) -> None:
        body = {"name": f"agent of {node}", "scopes": ["agent"], "node": node}
        token = self.client.post("/tokens", body)["token"]
        command = [*hangwatch(), "agent", "--server", self.url, "--node", node]
        command += ["--run-dir", str(self.run_dir(node)), *options]
        self.agents[node] = self._start(command, {"HANGWATCH_TOKEN": token}, self.log(node))

    def start_job(self, case: Case, name: str) -> RunningJob:
        """Start the case's program, one launcher per node, each under its node's agent."""
        mark = secrets.token_hex(8)
        environment = {processes.MARK: mark, **job_environment(case)}
        port = free_port()
        nodes = (BARE_NODE,) if case.depth is Depth.BARE else NODES[: case.nodes]
        logs = tuple(self.log(f"{name}-{node}") for node in nodes)
        job = RunningJob(case, name, mark, logs, [])
        self.jobs.append(job)  # known before it runs: an interrupt may come at any time
        for index, (node, log) in enumerate(zip(nodes, logs, strict=True)):
            command = launch_command(case, index, port)
            if case.depth is Depth.BARE:
                # Its name is all that a bare job is given, since it is found by it.
                environment["HANGWATCH_JOB"] = name
            else:
                command = self._watched(case, name, node, command)
            job.launchers.append(self._start(command, environment, log))
        return job

    def _watched(self, case: Case, name: str, node: str, command: Sequence[str]) -> list[str]:
        run = [*hangwatch(), "run", "--job", name, "--run-dir", str(self.run_dir(node))]
        return [*run, *case.run_args, "--", *command]

    def stop(self) -> None:
        """End jobs, agents, server, then all else with our mark; each whatever another raised."""
        with contextlib.ExitStack() as ends:  # the last in is the first to run
            ends.callback(processes.end_marked, processes.STAGE_MARK, self.mark)
            for process in filter(None, (self.server, *self.agents.values())):
                ends.callback(processes.stop, process)
            for job in self.jobs:
                ends.callback(job.stop)

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> Popen[bytes]:
        return processes.start(command, {processes.STAGE_MARK: self.mark, **environment}, log)

    def _reported(self) -> set[str]:
        return {node["name"] for node in self.client.get("/nodes")["items"]}

    def _is_ready(self) -> bool:
        try:
            self.client.get("/jobs")
        except (OSError, RuntimeError, HangwatchError):
            return False
        return True

    def _wait(self, what: str, process: Popen[bytes] | None, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not is_done():
            has_ended = process is not None and process.poll() is not None
            if has_ended or time.monotonic() > deadline:
                raise HangwatchError(
                    f"{what} did not come up; its log ends:\n{self.tail('server')}"
                )
            time.sleep(POLL_S)

    def tail(self, name: str, lines: int = 20) -> str:
        path = self.log(name)
        return (
            "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
            if path.exists()
            else ""
        )


def hangwatch() -> list[str]:
    """The command of this very installation, whatever PATH says."""
    return [sys.executable, "-m", "hangwatch_agent"]


def launch_command(case: Case, node_index: int, port: int) -> list[str]:
    """The training command as its user would type it on node `node_index`."""
    program = [str(case.path), *case.args]
    if case.launcher == "python":
        return [sys.executable, *program]
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--nnodes", str(case.nodes), "--nproc-per-node", str(case.ranks // case.nodes)]
    command += ["--node-rank", str(node_index), *case.launcher_args]
    return [*command, "--master-addr", "127.0.0.1", "--master-port", str(port), *program]


def job_environment(case: Case) -> dict[str, str]:
    """What the programs need: the modules that all families share, and few threads.

    One thread per rank, since the ranks of several jobs share few cores.
    """
    paths = [str(assets.programs()), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", **case.env}


def free_port() -> int:
    """A port that nobody uses, and that no outgoing connection takes before its user binds it."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def has_torch() -> bool:
    from importlib.util import find_spec

    return find_spec("torch") is not None


def make_folder(folder: Path) -> Path:
    """Create the folder so that the embedded Postgres, run as nobody, can reach its data."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        folder.chmod(0o711)
    return folder
