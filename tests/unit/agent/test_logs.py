"""Log lines stay one line whatever a job writes into them."""

from __future__ import annotations

import pytest

from hangwatch_agent import logs
from hangwatch_agent.errors import SettingsError


def test_values_are_quoted_escaped_and_bounded() -> None:
    assert (
        logs.line("linked", {"server": "ws://x", "why": "a b"}) == 'linked server=ws://x why="a b"'
    )
    assert "\n" not in logs.line("x", {"y": "a\nb\x1b[31m"})
    assert len(logs.line("x", {"y": "z" * 9999})) < 600


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="debug, info, warning, error"):
        logs.configure("loud")
