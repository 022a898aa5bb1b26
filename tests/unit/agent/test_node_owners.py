"""To whom a launch belongs when processes of several users claim it."""

from __future__ import annotations

from hangwatch_agent import node
from hangwatch_agent.process import Identity

ALICE, MALLORY = 1000, 1001


def test_launch_belongs_to_the_user_who_was_there_first() -> None:
    first = ("run:a", Identity(pid=10, start_ticks=500, uid=ALICE), False)
    later = ("run:a", Identity(pid=11, start_ticks=900, uid=MALLORY), False)

    assert node.owners([later, first]) == {"run:a": ALICE}


def test_launch_passes_to_a_living_process_when_its_first_owner_is_gone() -> None:
    gone = ("elastic:100", Identity(pid=10, start_ticks=500, uid=ALICE), True)
    living = ("elastic:100", Identity(pid=11, start_ticks=900, uid=MALLORY), False)

    assert node.owners([gone, living]) == {"elastic:100": MALLORY}


def test_record_of_a_process_that_never_lived_takes_nothing_from_the_living() -> None:
    invented = ("run:a", Identity(pid=99, start_ticks=1, uid=MALLORY), True)
    living = ("run:a", Identity(pid=10, start_ticks=500, uid=ALICE), False)

    assert node.owners([invented, living]) == {"run:a": ALICE}


def test_launches_of_several_users_stay_apart() -> None:
    of_alice = ("run:a", Identity(pid=10, start_ticks=500, uid=ALICE), False)
    of_mallory = ("run:b", Identity(pid=11, start_ticks=900, uid=MALLORY), False)

    assert node.owners([of_alice, of_mallory]) == {"run:a": ALICE, "run:b": MALLORY}
