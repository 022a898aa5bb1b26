"""What is left of a heartbeat whose agent may speak of some jobs alone."""

from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server.ingest import spoken

OWN = wire.Launch(key="slurm:1", name="llm-7b")
OTHER = wire.Launch(key="slurm:2", name="vision")


def rank(launch: str) -> wire.RankBeat:
    return wire.RankBeat(
        launch=launch,
        rank=0,
        local_rank=0,
        world_size=1,
        pid=1,
        start_ticks=1,
        process=wire.ProcessFacts(state="S"),
    )


def group(launch: str) -> wire.GroupInfo:
    return wire.GroupInfo(
        gid="a", launch=launch, name="dp", description="", backend="gloo", ranks="0"
    )


def beat(*launches: wire.Launch) -> wire.Heartbeat:
    keys = [launch.key for launch in launches]
    return wire.Heartbeat(
        number=1,
        launches=launches,
        ranks=tuple(rank(key) for key in keys),
        groups=tuple(group(key) for key in keys),
        ras=tuple(wire.RasReport(launch=key, number=1, age_s=0.0) for key in keys),
    )


def known(**names: str) -> dict[str, str]:
    return {key.replace("_", ":"): name for key, name in names.items()}


def test_without_a_pattern_all_is_taken() -> None:
    said = beat(OWN, OTHER)

    assert spoken.own(said, "", {}.get) == (said, frozenset())


def test_what_is_said_of_other_jobs_is_left_out_whole() -> None:
    found, others = spoken.own(beat(OWN, OTHER), "llm-*", {}.get)

    assert found == beat(OWN)
    assert others == {"vision"}


def test_another_jobs_launch_is_not_taken_under_a_name_of_ones_own() -> None:
    forged = wire.Launch(key=OTHER.key, name="llm-forged")

    found, others = spoken.own(beat(forged), "llm-*", known(slurm_2="vision").get)

    assert found == beat()
    assert others == {"llm-forged"}


def test_ranks_of_a_launch_that_is_not_listed_count_by_the_name_that_it_has_here() -> None:
    said = wire.Heartbeat(number=1, launches=(), ranks=(rank("slurm:1"), rank("slurm:2")))

    found, others = spoken.own(said, "llm-*", known(slurm_1="llm-7b", slurm_2="vision").get)

    assert [one.launch for one in found.ranks] == ["slurm:1"]
    assert others == {"vision"}
