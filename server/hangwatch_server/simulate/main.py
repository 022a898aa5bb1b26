"""The body of `hangwatch simulate`: check what is wanted, bring a server if none is given, play."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.board.base import job_id
from hangwatch_server.demo import report
from hangwatch_server.demo.main import open_stage
from hangwatch_server.demo.stage import Client, Connect
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import Kind, State
from hangwatch_server.simulate import agents, faults
from hangwatch_server.simulate.faults import Fault, Scene
from hangwatch_server.simulate.play import Play

RANKS_PER_NODE = 8
POLL_S = 0.5
# From the fault to the end of waiting: a machine is lost after 20 s, and large jobs take longer.
VERDICT_S = 120.0
CALM_S = 20.0  # of a healthy job, before it is believed


class SimulateError(HangwatchError):
    """What is wanted cannot be played."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The job as the command line asks for it."""

    ranks: int
    nodes: int | None
    fault: str
    fault_after_s: float
    job: str


@dataclass(frozen=True, slots=True)
class Target:
    """The server that the agents connect to."""

    url: str
    token: str
    client: Client


def show_faults() -> int:
    """`--list`."""
    for fault, words in faults.WORDS.items():
        print(f"{fault:12} {words}")
    return 0


def on_own_server(wanted: Wanted, *, once: bool, connect: Connect) -> int:
    """Play on a server of our own, which ends with us."""
    scene = _scene(wanted)
    with open_stage(connect) as stage:
        _say("starting the server with its own Postgres …")
        stage.start_server()
        return _play(wanted, scene, Target(stage.url, stage.admin_token, stage.client), once)


def on_server(wanted: Wanted, target: Target, *, once: bool) -> int:
    """Play on a server that runs; its token must have scope admin, to speak for all nodes."""
    scene = _scene(wanted)
    target.client.get("/jobs", limit=1)  # says in words what is wrong with address or token
    with contextlib.suppress(KeyboardInterrupt):  # the end that was offered, not a failure
        return _play(wanted, scene, target, once)
    return 0


def _scene(wanted: Wanted) -> Scene:
    if wanted.fault not in list(Fault):
        raise SimulateError(f"there is no fault '{wanted.fault}'; known are {', '.join(Fault)}")
    least = 1 if wanted.fault == Fault.HEALTHY else 2
    if not least <= wanted.ranks <= wire.MAX_WORLD_SIZE:
        raise SimulateError(
            f"--ranks {wanted.ranks} is not between {least} and {wire.MAX_WORLD_SIZE}"
        )
    nodes = wanted.nodes or max(1, wanted.ranks // RANKS_PER_NODE)
    if nodes < 1 or wanted.ranks % nodes or wanted.ranks // nodes > wire.MAX_RANKS_PER_NODE:
        raise SimulateError(
            f"{wanted.ranks} ranks do not share {nodes} nodes evenly, with at most "
            f"{wire.MAX_RANKS_PER_NODE} on each: give another --nodes"
        )
    fault = Fault(wanted.fault)
    if fault is Fault.NODE_LOST and nodes < 2:
        raise SimulateError("the fault node-lost needs a second node: give --nodes 2 or more")
    if fault is Fault.MISMATCH and wanted.ranks < 3:
        raise SimulateError(
            "of two ranks nobody can tell which one differs: give --ranks 3 or more"
        )
    return faults.scene(fault, wanted.ranks, nodes)


def _play(wanted: Wanted, scene: Scene, target: Target, once: bool) -> int:
    name = wanted.job or f"{scene.fault}-{scene.mesh.size}"
    launch = wire.Launch(key=f"simulate:{secrets.token_hex(8)}", name=name)
    play = Play(scene, launch, fault_after_s=wanted.fault_after_s)
    play.started_s = time.monotonic()  # not before: a large job takes seconds to make
    _say(f"job {name}: {_description(scene)}; see {target.url}/")
    with asyncio.Runner() as runner:
        found = runner.run(_until_verdict(play, target, once))
    return 1 if found else 0


async def _until_verdict(play: Play, target: Target, once: bool) -> list[str]:
    """Beat until the verdict is in, and then on unless `once`; what is not as it should be."""
    beating = asyncio.create_task(agents.run(play, target.url, target.token))
    try:
        judging = asyncio.create_task(_judge(play, target))
        await asyncio.wait((beating, judging), return_when=asyncio.FIRST_COMPLETED)
        if beating.done():
            judging.cancel()
            _raise(beating)
        found = judging.result()
        if not once:
            _say("Ctrl-C ends the job.")
            await beating
        return found
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


def _raise(ended: asyncio.Task[None]) -> None:
    """Why the agents could not go on, as the one error that says it."""
    problem: BaseException | None = ended.exception()
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    raise problem or SimulateError("all machines of the job are gone")


async def _judge(play: Play, target: Target) -> list[str]:
    """Follow the verdict, print each change and the last; what differs from the truth."""
    shown, verdict = "", None
    end_s = play.started_s + (
        play.fault_at_s - play.started_s + VERDICT_S if play.hangs else CALM_S
    )
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError):  # a busy server may answer late; it is asked again
            verdict = await asyncio.to_thread(_verdict, play.launch, target.client)
        if verdict is not None and verdict["state"] != shown:
            shown = verdict["state"]
            _say(report.row(shown, verdict["summary"] or verdict["limits"]["why"]))
        if verdict is not None and play.hangs and not differences(play.scene, verdict):
            break
        await asyncio.sleep(POLL_S)
    if verdict is None:
        raise SimulateError("the job never appeared: read the server's log")
    path = f"incidents/{verdict['incident']}" if verdict["incident"] else f"jobs/{verdict['job']}"
    found = differences(play.scene, verdict)
    for line in (*report.verdict_lines(verdict, f"{target.url}/{path}"), *_outcome(found)):
        _say(line)
    return found


def _verdict(launch: wire.Launch, client: Client) -> dict[str, Any] | None:
    """Of this very run: jobs of earlier ones may have the same name."""
    items = client.get("/jobs", q=launch.name)["items"]
    own = job_id(launch.key)
    return next((item["verdict"] for item in items if item["id"] == own), None)


def _outcome(found: list[str]) -> Iterator[str]:
    text = "not the truth: " + "; ".join(found) if found else "the truth"
    yield report.row("outcome", text)


def differences(scene: Scene, verdict: dict[str, Any]) -> list[str]:
    """What the verdict says otherwise than it is; empty when it is right."""
    state = State.HEALTHY if scene.kind is Kind.NONE else State.HUNG
    expected = {
        "state": state,
        "kind": scene.kind,
        "culprit_ranks": ranges.text(scene.culprits),
    }
    return [
        f"{name} is {verdict[name]!r}, the truth is {str(value)!r}"
        for name, value in expected.items()
        if verdict[name] != value
    ]


def _description(scene: Scene) -> str:
    mesh = scene.mesh
    tensor, data, pipe = mesh.shape
    nodes = mesh.node_of(mesh.size - 1) + 1
    return (
        f"{mesh.size} ranks on {nodes} nodes, tensor {tensor} x data {data} x pipeline {pipe}, "
        f"{len(mesh.groups)} groups; {faults.WORDS[scene.fault]}"
    )


def _say(text: str) -> None:
    print(text, flush=True)  # at once, into a pipe as well
