"""Log lines stay one line whatever a job writes into them."""

from __future__ import annotations

import json

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


def test_an_unknown_form_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="text or json"):
        logs.configure("info", "xml")


def test_line_as_json_has_the_names_of_the_servers(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    logs.info("linked", server="ws://x", node="a\nb", tries=2)
    try:
        raise ValueError("of a test")
    except ValueError:
        logs.exception("task_failed", task="link")

    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["event"], first["level"], first["node"], first["tries"]) == (
        "linked", "info", "a\nb", 2
    )  # fmt: skip
    assert first["timestamp"].endswith("Z")
    assert "ValueError: of a test" in second["exception"]
