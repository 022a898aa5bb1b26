"""Log lines stay one line whatever a job writes into them."""

from __future__ import annotations

from hangwatch_agent import logs


def test_values_are_quoted_escaped_and_bounded() -> None:
    assert (
        logs.line("linked", {"server": "ws://x", "why": "a b"}) == 'linked server=ws://x why="a b"'
    )
    assert "\n" not in logs.line("x", {"y": "a\nb\x1b[31m"})
    assert len(logs.line("x", {"y": "z" * 9999})) < 600
