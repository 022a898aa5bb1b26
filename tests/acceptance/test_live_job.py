"""A healthy job over two agents: what people and schedulers see of it, and what cannot disturb it.

One job for all tests of this file. The last one stops a rank of it and lets it go on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import msgspec
import pytest
from tests.support import commands, forgery, scenes
from tests.support.commands import assert_refused
from tests.support.scenes import Calm
from tests.support.waiting import until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from hangwatch_agent import wire
from hangwatch_agent.client import ClientError
from hangwatch_server.demo.stage import NODES, Stage
from hangwatch_server.model import State

NAME = "steady"
Hangwatch = Callable[..., "CompletedProcess[str]"]


@pytest.fixture(scope="module")
def calm(stage: Stage) -> Iterator[Calm]:
    """The job, healthy, with all four ranks reported."""
    job = stage.start_job(scenes.program(NAME, nodes=2, ranks=4), NAME)
    try:
        until(lambda: scenes.verdict_in(stage, NAME, State.HEALTHY), 90, "the job is healthy")
        until(lambda: scenes.job(stage, NAME)["reporting"] == 4, 90, "all ranks report")
        until(lambda: _have_probes(stage), 90, "all probes have written")
        yield Calm(stage, job)
    finally:
        job.stop()


def _have_probes(stage: Stage) -> bool:
    rows = scenes.ranks(stage, scenes.job(stage, NAME)["id"])
    return {row["depth"] for row in rows} == {"probe"}


@pytest.fixture(scope="module")
def hangwatch(stage: Stage) -> Hangwatch:
    """Run a command against the stage's server as its administrator, unless told otherwise."""

    def run(*arguments: str, **environ: str) -> CompletedProcess[str]:
        own = {"HANGWATCH_SERVER": stage.url, "HANGWATCH_TOKEN": stage.admin_token}
        return commands.hangwatch(*arguments, **{**own, **environ})

    return run


def test_two_agents_with_two_run_dirs_are_two_nodes_of_one_job(calm: Calm, stage: Stage) -> None:
    jobs = [item for item in stage.client.get("/jobs", q=NAME)["items"] if item["name"] == NAME]
    rows = scenes.ranks(stage, jobs[0]["id"])

    assert len(jobs) == 1
    assert jobs[0]["nodes"] == list(NODES)
    assert (jobs[0]["world_size"], jobs[0]["reporting"]) == (4, 4)
    assert {row["rank"]: row["node"] for row in rows} == {
        0: "node-a",
        1: "node-a",
        2: "node-b",
        3: "node-b",
    }
    assert [row["local_rank"] for row in rows] == [0, 1, 0, 1]
    assert {row["depth"] for row in rows} == {"probe"}


def test_status_is_a_table_for_people_and_json_for_machines(
    calm: Calm, hangwatch: Hangwatch
) -> None:
    def healthy() -> CompletedProcess[str] | None:
        """The table in which the job is whole: an agent may be late for a moment."""
        done = hangwatch("status")
        rows = [line.split() for line in done.stdout.splitlines() if NAME in line]
        return done if rows and rows[0][2:4] == ["healthy", "4/4"] else None

    table = until(healthy, 90, "the job is healthy in the table")
    document = hangwatch("status", "--json")
    one = hangwatch("status", NAME)

    assert (table.returncode, document.returncode, one.returncode) == (0, 0, 0)
    assert NAME in {item["name"] for item in json.loads(document.stdout)["items"]}
    assert "4 of 4 ranks reporting" in one.stdout


def test_stacks_of_a_running_job_name_its_code_and_ranks(calm: Calm, hangwatch: Hangwatch) -> None:
    def steady(*arguments: str) -> CompletedProcess[str] | None:
        """All stacks of one capture: a rank that runs may change its stack while it is read."""
        done = hangwatch("stacks", NAME, *arguments)
        return done if (done.returncode, done.stderr) == (0, "") else None

    with calm.undisturbed():
        text = until(steady, 90, "stacks of all ranks")
        tree = until(lambda: steady("--ranks", "2-3", "--json"), 90, "stacks of two ranks")

    assert "steady.py" in text.stdout
    assert "0-3" in text.stdout
    assert "steady.py" in tree.stdout
    assert json.loads(tree.stdout)["classes"]


@pytest.mark.parametrize(
    ("ranks", "status"),
    [("3-x", 422), ("3-1", 422), ("-1", 422), ("0-99999999999", 422), ("9", 404)],
)
def test_bad_rank_ranges_are_refused_in_words(
    calm: Calm, stage: Stage, hangwatch: Hangwatch, ranks: str, status: int
) -> None:
    job = scenes.job(stage, NAME)["id"]

    done = hangwatch("stacks", NAME, f"--ranks={ranks}")
    with pytest.raises(ClientError) as refused:
        stage.client.post(f"/jobs/{job}/captures", {"ranks": ranks, "kinds": ["stacks"]})

    assert_refused(done, "rank")
    assert refused.value.status == status
    assert "rank" in str(refused.value)


@pytest.mark.parametrize("command", ["check", "status", "stacks"])
def test_unknown_job_is_said_with_the_next_command(
    calm: Calm, hangwatch: Hangwatch, command: str
) -> None:
    assert_refused(hangwatch(command, "nope"), "nope", "hangwatch status")


@pytest.mark.parametrize("token", ["", "hw_00000000_wrong"], ids=["none", "wrong"])
def test_token_that_opens_nothing_is_said_with_the_next_command(
    calm: Calm, stage: Stage, hangwatch: Hangwatch, token: str
) -> None:
    done = hangwatch("token", "list", HANGWATCH_TOKEN=token)
    status, problem = rest(f"{stage.url}/api/v1/tokens", token)

    assert_refused(done, "hangwatch token create")
    # The stage lets anybody on this machine read, so that without a token the scope is missing.
    assert status == (401 if token else 403)
    assert problem["title"]
    assert "token" in problem["detail"]


def rest(url: str, token: str) -> tuple[int, dict[str, str]]:
    """Status and problem document of a GET that must be refused."""
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=60)
    with caught.value as answer:
        assert answer.headers["content-type"] == "application/problem+json"
        return answer.code, json.loads(answer.read())


@contextlib.contextmanager
def stranger(stage: Stage, node: str, says: str) -> Iterator[ClientConnection]:
    """A connection with a token for `node` that says hello as `says`."""
    body = {"name": f"of {node}", "scopes": ["agent"], "node": node}
    token = stage.client.post("/tokens", body)["token"]
    address = f"ws://127.0.0.1:{stage.port}/api/v1/agent/stream"
    headers = {"authorization": f"Bearer {token}"}
    with connect(address, additional_headers=headers, proxy=None, open_timeout=60) as line:
        line.send(wire.encode(wire.Hello(protocol=wire.PROTOCOL, node=says, version="0")))
        yield line


def answer(line: ClientConnection) -> wire.ServerFrame:
    data = line.recv(timeout=60)
    assert isinstance(data, bytes)
    return wire.decode_from_server(data)


def ask(line: ClientConnection, frame: bytes) -> wire.ServerFrame:
    line.send(frame)
    return answer(line)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\xc1 no msgpack", "malformed"),
        (msgspec.msgpack.encode({"type": "heartbeat", "number": "many"}), "malformed"),
        (bytes(wire.MAX_FRAME_BYTES + 1), "too_large"),
    ],
    ids=["garbage", "wrong types", "over the limit"],
)
def test_bad_frame_is_refused_in_words_while_other_agents_stream_on(
    calm: Calm, stage: Stage, frame: bytes, code: str
) -> None:
    with calm.undisturbed(), stranger(stage, "node-x", "node-x") as line:
        assert isinstance(answer(line), wire.Welcome)
        refused = ask(line, frame)
        with pytest.raises(ConnectionClosed):
            line.recv(timeout=60)

    assert isinstance(refused, wire.Refused)
    assert refused.code == code
    assert refused.reason
    assert scenes.job(stage, NAME)["reporting"] == 4


def test_frame_far_over_the_limit_is_not_even_read(calm: Calm, stage: Stage) -> None:
    with calm.undisturbed(), stranger(stage, "node-x", "node-x") as line:
        assert isinstance(answer(line), wire.Welcome)
        with pytest.raises(ConnectionClosed):
            ask(line, bytes(2 * wire.MAX_FRAME_BYTES))


def test_token_of_one_node_cannot_speak_for_another(calm: Calm, stage: Stage) -> None:
    with calm.undisturbed(), stranger(stage, "node-x", "node-a") as line:
        refused = answer(line)

    assert isinstance(refused, wire.Refused)
    assert refused.code == "wrong_node"
    assert "--node" in refused.reason


def test_second_server_on_the_same_data_folder_is_refused(
    calm: Calm, stage: Stage, hangwatch: Hangwatch
) -> None:
    assert stage.server is not None

    with calm.undisturbed():
        done = hangwatch("serve", "--port", "0", "--data-dir", str(stage.folder / "data"))

    assert_refused(done, "in use by another Hangwatch server", f"kill {stage.server.pid}")
    assert "--data-dir" in done.stderr


def test_port_in_use_is_refused(
    calm: Calm, stage: Stage, hangwatch: Hangwatch, tmp_path: Path
) -> None:
    with calm.undisturbed():
        done = hangwatch("serve", "--port", str(stage.port), "--data-dir", str(tmp_path / "data"))

    assert_refused(done, f"cannot listen on 127.0.0.1:{stage.port}", "--port")
    assert not (tmp_path / "data").exists()


def test_second_agent_on_the_same_run_dir_is_refused(
    calm: Calm, stage: Stage, hangwatch: Hangwatch
) -> None:
    with calm.undisturbed():
        done = hangwatch("agent", "--node", "node-x", "--run-dir", str(stage.run_dir("node-a")))

    assert_refused(done, "followed by another agent", "--run-dir")


@pytest.fixture
def bystander() -> Iterator[int]:
    """The pid of a process that is no rank and, where we are root, is root's."""
    if os.geteuid() != 0:
        yield 1
        return
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def parts_of(stage: Stage, job: str, ranks: str) -> list[dict[str, Any]]:
    """What the agents answer to a capture of stacks."""
    asked = stage.client.post(f"/jobs/{job}/captures", {"ranks": ranks, "kinds": ["stacks"]})
    return until(
        lambda: stage.client.get(f"/captures/{asked['id']}")["parts"], 90, "it is answered"
    )


def test_record_forged_by_another_user_shows_nothing_and_hides_nobody(
    calm: Calm, stage: Stage, bystander: int
) -> None:
    run_dir = stage.run_dir("node-a")
    job = scenes.job(stage, NAME)["id"]
    before = {row["rank"]: row["pid"] for row in scenes.ranks(stage, job)}

    forged = forgery.forge(stage.folder, run_dir, bystander, rank=1)
    try:
        with calm.undisturbed():
            until(lambda: scenes.said(stage.log("node-a"), forged.name), 90, "it is refused")
        after = {row["rank"]: row["pid"] for row in scenes.ranks(stage, job)}
        parts = parts_of(stage, job, "1")
    finally:
        forged.unlink()

    refusal = scenes.said(stage.log("node-a"), forged.name)[0]
    assert "record_refused" in refusal
    assert after == before
    assert [(part["rank"], part["pid"], part["has_stacks"]) for part in parts] == [
        (1, before[1], True)
    ]


@pytest.fixture
def impostor() -> Iterator[int]:
    """The pid of an own process of another user (where we are root; else of ours)."""
    user = forgery.NOBODY if os.geteuid() == 0 else None
    process = subprocess.Popen(["sleep", "600"], user=user, group=user, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_process_of_another_user_cannot_claim_a_place_in_the_job(
    calm: Calm, stage: Stage, impostor: int
) -> None:
    job = scenes.job(stage, NAME)
    before = {row["rank"]: row["pid"] for row in scenes.ranks(stage, job["id"])}
    # Only root can act as another user; one user's own newer process may rightly take over.
    claim = {"rank": 1} if os.geteuid() == 0 else {"rank": -1, "waits": ()}

    forged = forgery.forge(stage.folder, stage.run_dir("node-a"), impostor, **claim)
    try:
        with calm.undisturbed():
            _await_scan(stage, "node-a")
            parts = parts_of(stage, job["id"], "1")
        after = {row["rank"]: row["pid"] for row in scenes.ranks(stage, job["id"])}
    finally:
        forged.unlink()

    assert after == before
    assert scenes.job(stage, NAME)["attempt"] == job["attempt"]
    assert [(part["pid"], part["has_stacks"]) for part in parts] == [(before[1], True)]


def _await_scan(stage: Stage, node: str) -> None:
    """Until the agent has looked at its run dir: it refuses a record that is none."""
    marker = stage.run_dir(node) / "1.1.record"
    marker.touch(mode=0o600)
    try:
        until(lambda: scenes.said(stage.log(node), marker.name), 90, "the agent has looked")
    finally:
        marker.unlink()


def test_check_follows_a_rank_that_stops_and_goes_on(
    calm: Calm, stage: Stage, hangwatch: Hangwatch
) -> None:
    until(lambda: scenes.verdict_in(stage, NAME, State.HEALTHY), 120, "the job is healthy")
    before = hangwatch("check", NAME)
    victim = scenes.ranks(stage, scenes.job(stage, NAME)["id"])[3]["pid"]

    os.kill(victim, signal.SIGSTOP)
    try:
        until(lambda: scenes.verdict_in(stage, NAME, State.HUNG), 120, "the hang is confirmed")
        hung = hangwatch("check", NAME)
        document = json.loads(hangwatch("check", NAME, "--json").stdout)
        status = hangwatch("status", NAME)
        stacks = hangwatch("stacks", NAME, "--ranks", "0,3")
    finally:
        os.kill(victim, signal.SIGCONT)
    until(lambda: scenes.verdict_in(stage, NAME, State.HEALTHY), 120, "the job goes on")

    assert (before.returncode, hung.returncode) == (0, 1)
    assert "ank 3 (node-b" in hung.stdout
    assert document["verdict"]["culprit_ranks"] == "3"
    assert "stopped" in status.stdout
    assert "SIGCONT" in status.stdout
    assert stacks.returncode == 0
    assert "steady.py" in stacks.stdout
    assert hangwatch("check", NAME).returncode == 0
    incident = f"/incidents/{document['verdict']['incident']}"
    until(lambda: stage.client.get(incident)["ended_at"], 90, "the incident has ended")
