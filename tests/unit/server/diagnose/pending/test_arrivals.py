"""Who has not come to a call, where a group waits in many calls at once."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose import survey
from hangwatch_server.diagnose.pending import arrivals, proofs
from hangwatch_server.diagnose.pending.arrivals import Members
from hangwatch_server.diagnose.settings import DEFAULT
from hangwatch_server.model import Link, Snapshot

HAVE: dict[int, dict[int, Entry | None]] = {
    7: {0: make.entry(7), 1: make.entry(7)},
    9: {2: make.entry(9), 3: make.entry(9)},
}


def scattered() -> Snapshot:
    """Ranks wait in #7, in #9 and in nothing; two are silent, one is gone, one was never seen."""
    views = [
        *(make.rank(r, make.at("world", 6, 7)) for r in (0, 1)),
        *(make.rank(r, make.at("world", 6, 9)) for r in (2, 3)),
        *(make.rank(r, make.at("world", 6)) for r in (4, 5)),
        *(make.rank(r, make.at("world", 6, 9), link=Link.LOST, age_s=90.0) for r in (6, 7)),
        make.rank(8, make.at("world", 6), facts=make.process("gone")),
        make.unseen(9),
        make.rank(10, make.at("world", 8)),
    ]
    return make.snapshot(views, [make.world(*range(11))])


def asked(snapshot: Snapshot, calls: int) -> Members:
    looked = survey.survey(snapshot, DEFAULT)
    standings = looked.standings["world"]
    proof = proofs.of_group(looked, standings)
    return arrivals.members(looked, snapshot.groups["world"], standings, proof, calls=calls)


def test_equal_members_are_asked_as_one_where_there_are_many_calls() -> None:
    members = asked(scattered(), calls=2)

    assert sorted(members.alike) == [[0, 1], [2, 3], [4, 5], [10]]
    assert members.apart == (6, 7, 8, 9)


def test_equal_members_asked_as_one_say_what_each_says_for_itself() -> None:
    one_by_one, as_one = asked(scattered(), calls=1), asked(scattered(), calls=2)

    for seq, have in HAVE.items():
        assert arrivals.blockers(as_one, seq, have) == arrivals.blockers(one_by_one, seq, have)
        assert arrivals.done(as_one, seq) == arrivals.done(one_by_one, seq)
        assert arrivals.clock_s(as_one, have) == arrivals.clock_s(one_by_one, have)


def test_who_is_in_no_call_and_not_past_it_never_came() -> None:
    members = asked(scattered(), calls=2)

    for seq, missing in ((7, {4, 5}), (9, {0, 1, 4, 5, 10})):
        absent, *_ = arrivals.blockers(members, seq, HAVE[seq])
        assert missing <= set(absent)
    assert arrivals.done(members, 7) == (10,)
