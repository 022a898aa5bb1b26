"""A job, node and captures whose every name is an attack or an accident, for tests of all pages."""

from __future__ import annotations

import dataclasses

import msgspec
from tests.web import making, scenes

from hangwatch_agent import wire
from hangwatch_server import model

SCRIPT = '<script>document.title = "taken"</script>'
IMAGE = '<img src=x onerror="document.title=1">'
# A right-to-left override, invisible characters, a bell, lines and 4 kB that never break.
NAME = f"{SCRIPT}{IMAGE}\u202egnp.exe\u202c a\u200bb\ufeff\x07\nsecond line \U0001f682 {'m' * 4096}"
JOB = "ffff00001111"
JOB_PAGES = (
    "/",
    f"/jobs/{JOB}",
    f"/jobs/{JOB}/ranks/1",
    f"/jobs/{JOB}/ranks/0",
    f"/jobs/{JOB}/captures",
    "/incidents",
    "/incidents/inc-evil",
    "/incidents/inc-evil/stacks",
    "/captures/cap-evil",
    "/nodes",
    "/nodes/evil",
)


def scene() -> scenes.Scene:
    made = scenes.Scene()
    culprit = model.Culprit(
        rank=1,
        node="evil",
        pid=801,
        gpu=None,
        condition=model.Condition.UNKNOWN,
        where=NAME,
        detail=NAME,
    )
    said = making.verdict(
        JOB,
        NAME,
        model.State.HUNG,
        kind=model.Kind.MISSING_RANKS,
        stalled_s=20.0,
        summary=NAME,
        group=model.GroupRef(id="9f01", name=NAME, ranks="0-3"),
        seq=7,
        op=NAME,
        culprits=(culprit,),
        culprit_ranks="1",
        waiting="0,2-3",
        path=(
            model.PathStep(rank=0, waits_in=NAME, for_=(1,)),
            model.PathStep(rank=1, waits_in=NAME, for_=()),
        ),
        edges=(model.WaitEdge(ranks="0,2-3", call=NAME, missing="1", where=NAME),),
        evidence=(model.Evidence(kind="stack", text=NAME, capture="cap-evil"),),
        hints=(NAME,),
        incident="inc-evil",
    )
    rows = tuple(_rank(number) for number in range(4))
    made.add(
        making.job(said, ("evil",), script=NAME),
        rows,
        making.group(NAME, "0-3", description=NAME, op=NAME, behind="1", waiting="0,2-3"),
    )
    event = model.IncidentEvent(at=making.NOW, old="", new="acknowledged", why=NAME, by=NAME)
    made.incidents.append(
        dataclasses.replace(
            making.incident(said, captures=("cap-evil",), acknowledged_by=NAME),
            history=(event,),
            end_reason=NAME,
        )
    )
    missing = making.part(2, NAME, NAME)
    made.captures["cap-evil"] = making.capture(
        "cap-evil",
        JOB,
        "0-3",
        incident="inc-evil",
        requested_by=NAME,
        state=model.CaptureState.PARTIAL,
        parts=(*(making.part(number) for number in (0, 1, 3)), missing),
    )
    made.trees["cap-evil"] = _tree(missing)
    made.nodes = [
        making.node(
            "evil", version=NAME[:60], jobs=(JOB,), stacks=NAME, stacks_remedy=NAME, incidents=1
        ),
        making.node(NAME[:200], jobs=()),
    ]
    return made


def _rank(number: int) -> model.RankRow:
    return making.rank(
        number,
        "culprit" if number == 1 else "waiting",
        node="evil",
        waits_in=NAME,
        where=NAME,
        phase=NAME,
        lacks=(NAME,),
        depth=wire.Depth.BARE,
    )


def _tree(missing: model.PartRow) -> model.Tree:
    made = making.tree("cap-evil", "1", "0,3", (missing,))

    def named(nodes: tuple[model.TreeNode, ...]) -> tuple[model.TreeNode, ...]:
        return tuple(
            dataclasses.replace(node, name=NAME, file=NAME, children=named(node.children))
            for node in nodes
        )

    sources = (
        *(msgspec.structs.replace(one, lines=(NAME,) * len(one.lines)) for one in made.sources),
        *(wire.Source(file=NAME, line=line, first=line, lines=(NAME,)) for line in (88, 141, 190)),
    )
    return dataclasses.replace(made, roots=named(made.roots), sources=sources)
