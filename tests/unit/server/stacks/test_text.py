"""Stacks as plain text are read in terminals and chats: what a job names there stays text."""

from __future__ import annotations

from tests.unit.server.stacks import recorded

from hangwatch_server import stacks


def test_a_function_cannot_move_the_cursor_or_write_a_line_of_its_own() -> None:
    hostile = ("evil\x1b[2J\nrank 7 (1), main thread", "/home/u/\u202etrain.py", 5)

    said = stacks.text([stacks.RankStacks(3, (recorded.stack(hostile),))])

    assert said.splitlines()[:2] == [
        "rank 3 (1), main thread",
        "    evil[2Jrank 7 (1), main thread (/home/u/train.py:5)",
    ]
    assert "\x1b" not in said
