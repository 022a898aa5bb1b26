"""The scorecard counts and writes what it is given; playing the cases is not done here."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.scorecard import page, rows, tools, totals
from bench.scorecard.rows import PageAnswer, Peers, Row, TraceAnswer, Words


def row(name: str = "stopped", named: str = "1", culprits: str = "1", **given: object) -> Row:
    """A case whose culprits are `culprits`, of whom the verdict named `named`."""
    defaults: dict[str, object] = {
        "title": "One rank is stopped",
        "family": "process",
        "depth": "probe",
        "evidence": "frozen",
        "is_healthy": False,
        "expected": Words(state="hung", kind="missing_ranks", culprits=culprits, where="x.py"),
        "given": Words(state="hung", kind="missing_ranks", culprits=named),
        "confidence": 0.94,
        "named_s": 11.0,
        "hung_s": 19.0,
        "states": ("healthy", "suspected", "hung"),
        "differences": () if named == culprits else ("culprit_ranks is another",),
    }
    return Row(name=name, **{**defaults, **given})  # type: ignore[arg-type]


def healthy(name: str = "slow-steps", **given: object) -> Row:
    calm = Words(state="finished", kind="none")
    defaults: dict[str, object] = {
        "family": "healthy",
        "is_healthy": True,
        "expected": calm,
        "given": calm,
        "states": ("healthy", "finished"),
        "differences": (),
        "confidence": None,
    }
    return row(name, **{**defaults, **given})


def test_rows_survive_their_file_and_the_last_of_a_name_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    peers = Peers(shipped=TraceAnswer(error="KeyError: ('0', 0)"))

    rows.append(path, [row(named="2"), healthy()])
    rows.append(path, [row(peers=peers)])

    assert rows.read(path) == {"stopped": row(peers=peers), "slow-steps": healthy()}


def test_no_file_has_no_rows(tmp_path: Path) -> None:
    assert rows.read(tmp_path / "none.jsonl") == {}


def test_precision_counts_innocents_and_recall_counts_the_forgotten() -> None:
    found = totals.of_verdicts([row(named="1-2", culprits="1"), row(named="", culprits="3")])

    assert (found.right, found.wrong, found.missed) == (1, 1, 1)
    assert (found.precision, found.recall) == (0.5, 0.5)


def test_alarm_about_a_healthy_job_names_an_innocent() -> None:
    alarm = healthy(given=Words(state="hung", culprits="0"), states=("healthy", "hung"))

    assert alarm.is_false_alarm
    assert totals.of_verdicts([alarm, healthy()]).wrong == 1


def test_suspicion_that_passed_is_no_false_alarm() -> None:
    assert not healthy(states=("healthy", "suspected", "healthy", "finished")).is_false_alarm


def test_nothing_named_has_no_precision() -> None:
    assert totals.of_verdicts([healthy()]).precision is None


def test_reliability_compares_confidence_with_the_share_right() -> None:
    bins = totals.reliability([row(), row(named="2"), row(confidence=0.3), healthy()])

    assert [(one.size, one.right) for one in bins] == [(1, 1.0), (2, 0.5)]
    assert totals.calibration_error(bins) == pytest.approx((0.7 + 2 * 0.44) / 3)


@pytest.mark.parametrize(("named", "is_right"), [("1", True), ("0-1", False), ("", False)])
def test_trace_is_right_only_with_exactly_the_culprits(named: str, is_right: bool) -> None:
    assert totals.is_trace_right(TraceAnswer(named=named, reports=1), row()) is is_right


def test_trace_that_raised_is_never_right() -> None:
    blames_nobody = row(named="", culprits="")

    assert not totals.is_trace_right(TraceAnswer(error="KeyError"), blames_nobody)
    assert totals.is_trace_right(TraceAnswer(), blames_nobody)


def test_report_of_torchfrtrace_is_read() -> None:
    text = "collective: gloo:all_reduce\nmissing ranks: {1, 4}\nerror msg: Culprit rank 5; SIZES\n"

    assert tools.read_report(text, "") == TraceAnswer(named="1,4-5", reports=2)


def test_page_tells_totals_each_case_and_what_is_missing() -> None:
    peers = Peers(
        shipped=TraceAnswer(error="KeyError: ('0', 0)"),
        repaired=TraceAnswer(named="1", reports=1),
        stacks=PageAnswer(status=200, answered=3, shows_culprits=True),
        trace_page=PageAnswer(status=500, error="KeyError"),
    )

    text = "\n".join(page.lines([row(peers=peers), row("lock", named="2"), healthy()], ["gil"]))

    assert "| faulty programs right in everything | 1 of 2 |" in text
    assert "| healthy programs left in peace | 1 of 1 |" in text
    assert "**Not played:** `gil`." in text
    assert "* `lock`: culprit_ranks is another" in text
    cells = "KeyError: ('0', 0) | 1 in 1 reports, right | 3 ranks, the culprit's too"
    assert f"| `stopped` | 1 | {cells} |" in text
    assert "in 1 of 1 cases" in text


def test_tables_of_generated_jobs_are_kept_as_plain_text() -> None:
    lines = list(page.generated(["fault  right", "", "skip   1"]))

    assert lines[1:] == ["    fault  right", "", "    skip   1"]
