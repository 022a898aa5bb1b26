"""Holds the page of the scorecard to the programs: a run writes it, and the code may outlive it."""

from __future__ import annotations

import re
from pathlib import Path

from hangwatch_server.demo import cases

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scorecard.md"


def test_scorecard_names_only_cases_that_exist() -> None:
    named = set(re.findall(r"^(?:\||\*) `([\w-]+)`", PAGE.read_text("utf-8"), re.MULTILINE))

    assert named
    assert named <= {case.name for case in cases.load()}
