"""The calls of a group, read from what its members have written out."""

from __future__ import annotations

import msgspec
from tests.unit.server.diagnose import builders as make

from hangwatch_agent.wire import Tail
from hangwatch_server.diagnose import survey
from hangwatch_server.diagnose.calls import record
from hangwatch_server.diagnose.settings import DEFAULT
from hangwatch_server.diagnose.survey import Survey


def looked() -> Survey:
    """Rank 1 has #4 written out whole; rank 0 has it as a tail alone, rank 2 nowhere."""
    tail = Tail(calls=((4, 0),), kinds=(make.entry(0, "barrier", retired=True),))
    groups = (
        msgspec.structs.replace(make.at("world", 7, 8), tail=tail),
        make.at("world", 5, 6),
        make.at("world", 8, 9),
    )
    views = [make.rank(number, group) for number, group in enumerate(groups)]
    return survey.survey(make.snapshot(views, [make.world(0, 1, 2)]), DEFAULT)


def test_a_call_is_found_written_out_and_in_a_tail() -> None:
    found = record.at(looked(), "world", 4)

    assert {rank: (entry.op, entry.seq) for rank, entry in found.items()} == {
        0: ("barrier", 4),
        1: ("all_reduce", 4),
    }


def test_asking_about_one_call_changes_nothing_of_the_answer_about_it() -> None:
    asked = looked()

    first = record.at(asked, "world", 6)
    first.clear()

    assert sorted(record.at(asked, "world", 6)) == [0, 1, 2]
    assert record.at(asked, "world", 99) == {}
