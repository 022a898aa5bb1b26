"""A real Slurm of two nodes on this machine: munged, slurmctld and two slurmd, all in one folder.

Nothing of it touches a Slurm that may run here: socket, ports, key and state are its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import until

from hangwatch_server.demo import processes
from hangwatch_server.demo.stage import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd")
NODES = ("n1", "n2")
START_S = 60
COMMAND_S = 60
# Debian keeps daemons where a user's PATH does not look.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def is_installed() -> bool:
    return all(shutil.which(program, path=PATH) for program in PROGRAMS)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Commands of a running Slurm; `folder` holds its logs."""

    folder: Path

    def run(self, *command: str, **environ: str) -> str:
        """Output of a client command; fails with its errors when it fails."""
        done = subprocess.run(
            command,
            env={**os.environ, "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}
            | environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def job(self, number: str) -> dict[str, str]:
        """`scontrol show job` by its words: JobState, Restarts, ExcNodeList, Reason, …"""
        return _pairs(self.run("scontrol", "show", "--oneliner", "job", number))

    def node(self, name: str) -> dict[str, str]:
        return _pairs(self.run("scontrol", "show", "--oneliner", "node", name))


def _pairs(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


@contextlib.contextmanager
def running(folder: Path, scripts: Mapping[str, str]) -> Iterator[Cluster]:
    """Start it and wait until both nodes are idle; `scripts` are lines such as Prolog=/path."""
    mark = secrets.token_hex(8)
    started = []

    def start(name: str, *command: str) -> None:
        program = shutil.which(command[0], path=PATH)
        assert program is not None, command[0]
        environment = {"PATH": PATH, processes.MARK: mark, "SLURM_CONF": str(folder / "slurm.conf")}
        log = folder / f"{name}.out"
        started.append(processes.start([program, *command[1:]], environment, log))

    _prepare(folder, scripts)
    cluster = Cluster(folder)
    try:
        start("munged", "munged", "--foreground", "--force", *_munge(folder))
        until((folder / "munge.socket").exists, START_S, "munged listens")
        start("slurmctld", "slurmctld", "-D")
        for node in NODES:
            start(node, "slurmd", "-D", "-N", node)
        until(lambda: _is_idle(cluster), START_S, "both nodes are idle")
        yield cluster
    finally:
        for process in reversed(started):
            processes.kill_family(process, mark)


def _is_idle(cluster: Cluster) -> bool:
    with contextlib.suppress(AssertionError):
        return cluster.run("sinfo", "--noheader", "--format=%T %D").split() == ["idle", "2"]
    return False


def _munge(folder: Path) -> tuple[str, ...]:
    return (
        f"--socket={folder / 'munge.socket'}",
        f"--key-file={folder / 'munge.key'}",
        f"--log-file={folder / 'munged.log'}",
        f"--pid-file={folder / 'munged.pid'}",
        f"--seed-file={folder / 'munged.seed'}",
    )


def _prepare(folder: Path, scripts: Mapping[str, str]) -> None:
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o600)
    (folder / "state").mkdir()
    for node in NODES:
        (folder / f"spool-{node}").mkdir()
    lines = [*_configuration(folder), *(f"{key}={path}" for key, path in scripts.items())]
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")


def _configuration(folder: Path) -> list[str]:
    host = socket.gethostname().partition(".")[0]
    nodes = [
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=2"
        for node in NODES
    ]
    return [
        "ClusterName=hangwatch",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={free_port()}",
        f"SlurmUser={_user()}",
        f"SlurmdUser={_user()}",
        "AuthType=auth/munge",
        # How long a requeued job must wait is the life of a credential: 120 s unless said.
        f"AuthInfo=socket={folder / 'munge.socket'},cred_expire=5",
        f"StateSaveLocation={folder / 'state'}",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder / 'slurmctld.pid'}",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        f"SlurmctldLogFile={folder / 'slurmctld.log'}",
        f"SlurmdLogFile={folder}/slurmd-%n.log",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SlurmdParameters=config_overrides",
        "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1",
        "JobRequeue=1",
        "KillWait=3",
        "ReturnToService=2",
        "MpiDefault=none",
        *nodes,
        f"PartitionName=all Nodes={','.join(NODES)} Default=YES MaxTime=10 State=UP",
    ]


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
