"""What is read from the arguments of a wrapped call, and how it corrects the group's numbers."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from hangwatch_agent.probe import calls, dynamo, entries, groups


def test_root_comes_from_the_options_or_the_short_overload() -> None:
    options = SimpleNamespace(rootRank=3)

    assert calls._root("broadcast", ([], options), {}) == 3
    assert calls._root("gather", ([], [], options), {}) == 3
    assert calls._root("broadcast", ("tensor", 2), {}) == 2
    assert calls._root("scatter", ("tensor", [], 1), {}) == 1
    assert calls._root("reduce", ("tensor",), {"root": 4}) == 4


def test_first_tensor_among_nested_arguments_decides_the_device() -> None:
    accelerator = SimpleNamespace(is_cpu=False)

    assert not calls._is_on_cpu(([], [[accelerator]], 1))
    assert calls._is_on_cpu(([SimpleNamespace(is_cpu=True)], 1))
    assert calls._is_on_cpu((1, 2))


def test_send_moves_the_raw_counter_but_not_the_comparable_number() -> None:
    group = groups.Group("0", (0, 1), 1, is_watched=True)
    group.entering = 1

    calls._correct(calls.Call("send", group), raw=7, after=8)

    assert group.offset == -1
    assert group.entering == 0


def test_monitored_barrier_uses_up_two_numbers_whatever_it_counts() -> None:
    group = groups.Group("0", (0, 1, 2), 1, is_watched=True)
    group.entering = 1

    calls._correct(calls.Call("monitored_barrier", group), raw=8, after=12)

    assert (group.offset, group.burned) == (-2, 2)


def test_group_rank_of_a_subgroup_becomes_a_global_rank() -> None:
    group = groups.Group("1", (5, 3), 1, is_watched=True)

    assert group.global_rank(1) == 3
    assert group.global_rank(2) is None


def test_locals_of_the_users_own_frames_are_never_asked_for() -> None:
    async_op = True

    assert calls._local(sys._getframe(), "async_op") is None
    assert async_op


def test_compiler_may_be_absent() -> None:
    # Neither raises: a builtin has no code to mark, and without torch nobody is to be told.
    dynamo.keep_out(len)
    dynamo.keep_out(test_compiler_may_be_absent)


def test_root_is_kept_under_the_number_of_its_call_and_joins_its_entry() -> None:
    group = groups.Group("1", (5, 3), 1, is_watched=True)
    group.offset = -2
    torchs = SimpleNamespace(_get_sequence_number_for_group=lambda: 9)

    found = calls._note_root("broadcast", torchs, group, ("tensor", 1), {})
    listed = [{"seq": 7, "op": "broadcast"}, {"seq": 8, "op": "broadcast"}]
    entries._attach_roots(listed, group)

    assert found == 3
    assert listed == [{"seq": 7, "op": "broadcast"}, {"seq": 8, "op": "broadcast", "root": 3}]
