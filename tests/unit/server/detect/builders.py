"""Snapshots, findings and a small clockwork for the tests of detection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec
from tests.support import looks

from hangwatch_agent import wire
from hangwatch_server import detect, model, ranges
from hangwatch_server.model import Activity, Condition, Finding, Kind, Link, State

NONE = Finding(kind=Kind.NONE)
GROUP = model.GroupRef(id="g", name="dp", ranks="0-3")


def beat(
    rank: int,
    stall_s: float = 0.2,
    *,
    process: wire.ProcessFacts | None = None,
    counter: int = 10,
    timeout_s: float | None = None,
    world_size: int = 4,
) -> wire.RankBeat:
    """A rank under the probe with one group; CPU 0 and state S unless `process` says otherwise."""
    entries = (wire.Entry(seq=5, op="all_reduce", is_retired=False, timeout_s=timeout_s),)
    group = wire.GroupBeat(
        gid="g",
        counter=counter,
        stall_s=stall_s,
        entries=entries if timeout_s else (),
    )
    return wire.RankBeat(
        launch="launch",
        rank=rank,
        local_rank=rank,
        world_size=world_size,
        pid=100 + rank,
        start_ticks=1,
        process=process or facts(),
        depth=wire.Depth.PROBE,
        is_initialised=True,
        groups=(group,),
    )


def facts(
    state: str = "S",
    cpu: float | None = 0.0,
    *,
    code: int | None = None,
    signal: int | None = None,
    io_bytes: int | None = None,
    children: tuple[wire.ChildFacts, ...] = (),
    wchan: str = "",
    still_s: float | None = None,
    delay: float | None = None,
    main_cpu_s: float = 0.0,
    cpu_s: float = 0.0,
) -> wire.ProcessFacts:
    return wire.ProcessFacts(
        state=state,
        wchan=wchan,
        main_still_s=still_s,
        main_delay_share=delay,
        main_cpu_s=main_cpu_s,
        cpu_s=cpu_s,
        main_cpu_share=cpu,
        exit_code=code,
        exit_signal=signal,
        io_bytes=io_bytes,
        children=children,
    )


def changed(given: wire.RankBeat, **fields: object) -> wire.RankBeat:
    return msgspec.structs.replace(given, **fields)


def view(
    given: wire.RankBeat | None,
    rank: int | None = None,
    link: Link = Link.LIVE,
    age_s: float = 0.0,
    node: str | None = None,
) -> model.RankView:
    """A rank without a heartbeat has no node, unless one is given as after a server's restart."""
    number = given.rank if given is not None else rank
    assert number is not None
    name = node if node is not None else f"node-{number}" if given is not None else ""
    return model.RankView(rank=number, node=name, link=link, age_s=age_s, beat=given)


def snapshot(
    views: list[model.RankView], taken_s: float = 100.0, age_s: float = 100.0
) -> model.Snapshot:
    return model.Snapshot(
        job="job",
        attempt=1,
        world_size=len(views),
        ranks={item.rank: item for item in views},
        groups={},
        taken_s=taken_s,
        age_s=age_s,
    )


def finding(
    stalled_s: float,
    culprits: tuple[int, ...] = (2,),
    *,
    kind: Kind = Kind.MISSING_RANKS,
    waiting: str = "0-1,3",
    is_hard: bool = False,
    key: str = "k",
) -> Finding:
    return Finding(
        kind=kind,
        group=GROUP,
        culprits=tuple(
            model.Culprit(
                rank=r,
                node=f"node-{r}",
                pid=100 + r,
                gpu=None,
                condition=Condition.UNKNOWN,
                where="",
            )
            for r in culprits
        ),
        culprit_ranks=ranges.text(culprits),
        waiting=waiting,
        is_hard=is_hard,
        stalled_s=stalled_s,
        key=key,
    )


Beats = Callable[[float], list[model.RankView]]
Findings = Callable[[float], Finding]


@dataclass
class Clockwork:
    """Runs detection once a second; a wished capture is there one second later.

    `stacks` says at a moment which (activity, leaf) a capture of a rank shows; a rank that it does
    not name cannot be captured.
    """

    beats: Beats
    findings: Findings
    stacks: Callable[[float], Mapping[int, tuple[Activity, str]]] = lambda at_s: {}
    settings: detect.DetectSettings = field(default_factory=detect.DetectSettings)
    memory: detect.Memory = field(default_factory=detect.Memory)
    log: list[tuple[float, detect.Decision]] = field(default_factory=list)
    taken: dict[int, list[tuple[float, Activity, str]]] = field(default_factory=dict)
    groups: Mapping[str, model.GroupView] = field(default_factory=dict)
    start_s: float = 1000.0

    def run(self, until_s: float, since_s: float = 0.0) -> Clockwork:
        at_s = since_s
        while at_s <= until_s:
            self.tick(at_s)
            at_s += 1.0
        return self

    def run_to(self, at_s: int) -> Clockwork:
        """As `run`, but between the first twenty seconds and the last six only every fourth."""
        dense = {*range(min(20, at_s)), *range(max(0, at_s - 6), at_s + 1)}
        for moment_s in sorted(dense | set(range(20, at_s, 4))):
            self.tick(moment_s)
        return self

    def tick(self, at_s: float) -> detect.Decision:
        views = [replace(item, stack=self._stack(item.rank, at_s)) for item in self.beats(at_s)]
        seen = snapshot(views, self.start_s + at_s, age_s=600.0)
        seen = replace(seen, groups=dict(self.groups))
        self.memory, decision = detect.step(self.memory, seen, self.findings(at_s), self.settings)
        self.log.append((at_s, decision))
        for wish in decision.wishes:
            if wire.CaptureKind.STACKS in wish.kinds:
                self._take(wish.ranks, at_s + 0.5)
        return decision

    def _take(self, ranks_: tuple[int, ...], at_s: float) -> None:
        for rank in ranks_:
            shown = self.stacks(at_s).get(rank)
            if shown is not None:
                self.taken.setdefault(rank, []).append((at_s, *shown))

    def _stack(self, rank: int, at_s: float) -> model.StackFacts | None:
        taken = [item for item in self.taken.get(rank, []) if item[0] <= at_s]
        return looks.facts(rank, taken, at_s)

    def at(self, at_s: float) -> detect.Decision:
        """The decision of the tick at this second."""
        return next(decision for moment_s, decision in self.log if moment_s == at_s)

    def states(self) -> list[State]:
        """The states in order, without repeats."""
        found: list[State] = []
        for _, decision in self.log:
            if not found or found[-1] is not decision.state:
                found.append(decision.state)
        return found

    def first(self, state: State) -> float | None:
        return next((at_s for at_s, decision in self.log if decision.state is state), None)


def stuck(
    culprit: wire.ProcessFacts | None = None,
    *,
    world: int = 4,
    rank: int = 2,
    timeout_s: float | None = None,
) -> Beats:
    """All ranks quiet since second 0; the culprit's process is `culprit`."""

    def beats(at_s: float) -> list[model.RankView]:
        return [
            view(beat(r, at_s, process=culprit if r == rank else None, timeout_s=timeout_s))
            for r in range(world)
        ]

    return beats


def frozen_stack(
    activity: Activity = Activity.USER_CODE, rank: int = 2
) -> Callable[[float], Mapping[int, tuple[Activity, str]]]:
    return lambda at_s: {rank: (activity, "train.py:88 in step")}


def moving_stack(
    activity: Activity = Activity.USER_CODE, rank: int = 2
) -> Callable[[float], Mapping[int, tuple[Activity, str]]]:
    return lambda at_s: {rank: (activity, f"train.py:{at_s:g} in step")}
