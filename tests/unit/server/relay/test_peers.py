"""Which servers are heard, what was missed of them, and who holds which node."""

from __future__ import annotations

from hangwatch_server.relay import peers
from hangwatch_server.relay.peers import Peer, Peers


def known(*names: str, now_s: float = 0.0) -> Peers:
    made = Peers(5.0)
    for name in names:
        made.called(name, 0, now_s)
    return made


def found(made: Peers, name: str) -> Peer:
    peer = made.find(name)
    assert peer is not None
    return peer


def test_server_is_new_once() -> None:
    made = Peers(5.0)

    assert [made.called("one", 5, 0.0), made.called("one", 5, 1.0)] == [True, False]


def test_batches_in_a_row_miss_nothing_and_a_gap_is_noticed_once() -> None:
    made, seen = known("one"), []
    made.whole("one", (), 0)

    for number in (1, 2, 4, 5):
        made.batch("one", number)
        seen.append(found(made, "one").is_whole)

    assert seen == [True, True, False, False]


def test_whole_state_that_began_before_a_gap_is_not_believed() -> None:
    made = known("one")
    made.batch("one", 4)

    made.whole("one", (), 2)
    before = found(made, "one").is_whole
    made.whole("one", (), 3)

    assert (before, found(made, "one").is_whole) == (False, True)


def test_last_batch_that_never_came_is_noticed_by_the_calls_after_it() -> None:
    made, seen = known("one"), []
    made.whole("one", (), 0)

    for now_s in (1.0, 1.5, 1.1 + peers.BEHIND_S):
        made.called("one", 1, now_s)
        seen.append(found(made, "one").is_whole)

    assert seen == [True, True, False]


def test_nodes_of_a_server_that_stopped_calling_are_not_heard() -> None:
    made = known("one", "two")
    made.holds("one", "node-a")
    made.holds("two", "node-b")

    made.called("two", 0, 10.0)

    assert made.unheard(10.0, is_deaf=False) == {"node-a"}
    assert made.unheard(10.0, is_deaf=True) == {"node-a", "node-b"}


def test_node_that_moved_is_held_by_its_new_server_alone() -> None:
    made = known("one", "two")
    made.holds("one", "node-a")

    made.holds("two", "node-a")

    assert made.holder("node-a") == "two"
    assert made.forget("one") == frozenset()
    assert made.forget("two") == {"node-a"}
    assert made.holder("node-a") == ""


def test_whole_state_names_what_is_no_longer_held() -> None:
    made = known("one")
    made.holds("one", "node-a")
    made.holds("one", "node-b")

    gone = made.whole("one", ("node-b", "node-c"), 0)

    assert gone == {"node-a"}
    assert found(made, "one").is_whole


def test_whole_state_is_asked_for_again_only_after_a_while() -> None:
    made = known("one")
    one = found(made, "one")

    asked = [made.wants(one, now_s) for now_s in (0.0, 1.0, peers.WANT_EVERY_S)]

    assert asked == [True, False, True]


def test_node_that_is_sent_away_is_held_by_nobody_and_still_heard() -> None:
    made = known("one", "two")
    made.holds("one", "node-a")

    made.moves("node-a", 10.0)

    assert made.holder("node-a") == ""
    assert made.whole("one", (), 0) == frozenset()
    assert made.forget("one") == frozenset()


def test_node_that_was_sent_away_and_comes_nowhere_is_named_once_when_it_is_late() -> None:
    made = known("one", "two")
    for node in ("node-a", "node-b"):
        made.moves(node, 10.0)
    made.holds("two", "node-b")

    found = [made.astray(now_s) for now_s in (14.0, 16.0, 17.0)]

    assert found == [(), ("node-a",), ()]
