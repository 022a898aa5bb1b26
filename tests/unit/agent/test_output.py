"""What the command line prints of texts that jobs chose."""

from __future__ import annotations

import pytest

from hangwatch_agent.commands import output


def test_a_jobs_name_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("NAME", "JOB"), [("gpt\x1b[2J\x9b1m", "a\u202eb")])
    output.note("rank 1\x07")

    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split() == ["gpt[2J1m", "ab"]
    assert captured.err == "rank 1\n"


def test_lines_and_indents_stay(capsys: pytest.CaptureFixture[str]) -> None:
    output.text("one\n\ttwo")

    assert capsys.readouterr().out == "one\n\ttwo\n"
