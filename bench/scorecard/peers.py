"""Asks torch's own tools about a job that hangs: `torchfrtrace`, and the pages of its debug server.

Both work on what each rank's worker server answers, the same C++ server that
`torch.distributed.debug.start_debug_server` starts; here it is the one that the probe opened on a
unix socket, so that the job need not be changed. The tools themselves are torch's own, unchanged,
and run in a process of their own (`tools`). torchfrtrace reads pickles, which a live rank does not
give without importing hundreds of modules: the same entries are written for it, without stacks.

As shipped torchfrtrace fails on every gloo dump, whose `pg_config` torch 2.13 leaves without names;
so it is asked a second time with that table put right from what Hangwatch knows of the groups.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

import msgspec
from bench.scorecard import rows

from hangwatch_server import ranges
from hangwatch_server.demo import processes
from hangwatch_server.demo.stage import RunningJob, Stage, free_port

FETCH_TIMEOUT_S = 5.0
TOOLS_TIMEOUT_S = 120.0
ROOT = Path(__file__).resolve().parents[2]
Dump = dict[str, Any]  # torch's own document


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the process with the tools is told."""

    world_size: int
    sockets: dict[str, str]  # rank -> unix socket; a rank without one does not answer
    shipped_dir: str
    repaired_dir: str
    store_port: int
    page_port: int
    culprits: tuple[int, ...]
    fetch_timeout_s: float = FETCH_TIMEOUT_S


class _UnixConnection(HTTPConnection):
    """HTTP over a unix socket, with a timeout for each wait."""

    def __init__(self, path: str) -> None:
        super().__init__("rank", timeout=FETCH_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket(AF_UNIX, SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask(stage: Stage, job: RunningJob, verdict: Mapping[str, Any]) -> rows.Peers:
    """Ask all tools while the job still hangs; what fails is an answer too."""
    folder = stage.folder / f"peers-{job.name}"
    sockets = _sockets(stage, str(verdict["job"]))
    shipped, repaired = folder / "shipped", folder / "repaired"
    for target in (shipped, repaired):
        target.mkdir(parents=True)
    groups = stage.client.get(f"/jobs/{verdict['job']}/groups")["items"]
    for rank, path in sockets.items():
        dump = _dump(path)
        if dump is not None:
            _write(shipped / f"rank{rank}", dump)
            _write(repaired / f"rank{rank}", {**dump, "pg_config": _config(groups, rank)})
    task = Task(
        world_size=job.case.ranks,
        sockets={str(rank): path for rank, path in sockets.items()},
        shipped_dir=str(shipped),
        repaired_dir=str(repaired),
        store_port=free_port(),
        page_port=free_port(),
        culprits=ranges.parse(job.case.culprits),
    )
    return _run_tools(stage, folder, task)


def _run_tools(stage: Stage, folder: Path, task: Task) -> rows.Peers:
    spec, answer = folder / "task.json", folder / "answer.json"
    spec.write_bytes(msgspec.json.encode(task))
    command = [sys.executable, "-m", "bench.scorecard.tools", str(spec), str(answer)]
    log = folder / "tools.log"
    process = processes.start(
        command, {processes.STAGE_MARK: stage.mark, "PYTHONPATH": _path()}, log
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(TOOLS_TIMEOUT_S)
    processes.stop(process)
    if not answer.exists():
        failed = rows.TraceAnswer(error=f"the tools gave no answer: {log.read_text()[-200:]}")
        return rows.Peers(shipped=failed, repaired=failed)
    return msgspec.json.decode(answer.read_bytes(), type=rows.Peers)


def _path() -> str:
    return ":".join([str(ROOT), *sys.path])


def _sockets(stage: Stage, job_id: str) -> dict[int, str]:
    """The worker server of each rank that has one: `<pid>.<start>.sock` in its node's run dir."""
    found: dict[int, str] = {}
    for row in stage.client.get(f"/jobs/{job_id}/ranks")["items"]:
        if row["node"] and row["pid"]:
            for path in stage.run_dir(row["node"]).glob(f"{row['pid']}.*.sock"):
                found[int(row["rank"])] = str(path)
    return found


def _dump(path: str) -> Dump | None:
    """The rank's recorder as its worker server gives it; None if it does not answer."""
    line = _UnixConnection(path)
    try:
        line.request("POST", "/handler/fr_trace_json")
        dump: Dump = json.loads(line.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        line.close()
    dump.setdefault("entries", [])  # the JSON leaves an empty list out, the pickle does not
    for entry in dump["entries"]:
        entry.setdefault("frames", [])
    return dump


def _config(groups: list[Mapping[str, Any]], rank: int) -> dict[str, dict[str, str]]:
    """`pg_config` as the recorder ought to give it: each group that this rank belongs to."""
    return {
        group["name"]: {
            "name": group["name"],
            "desc": group["description"],
            "ranks": str(list(ranges.parse(group["ranks"]))),
        }
        for group in groups
        if rank in ranges.parse(group["ranks"])
    }


def _write(path: Path, dump: Dump) -> None:
    path.write_bytes(pickle.dumps(dump))
