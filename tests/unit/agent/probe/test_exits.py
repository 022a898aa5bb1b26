"""The exit mark's code."""

from __future__ import annotations

from hangwatch_agent.probe import exits


def test_code_follows_what_sys_exit_was_given() -> None:
    assert exits._code_of(None) == 0
    assert exits._code_of(3) == 3
    assert exits._code_of(-1) == 255
    assert exits._code_of("a message") == 1
