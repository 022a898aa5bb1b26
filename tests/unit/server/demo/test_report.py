"""The demo's verdict in the terminal: nothing is wider than the terminal, nothing is lost."""

from __future__ import annotations

from hangwatch_server.api import examples
from hangwatch_server.demo import report

LONG = "a word and another " * 12


def lines() -> list[str]:
    verdict = {
        **examples.VERDICT,
        "hints": [LONG],
        "path": [{"rank": 0, "waits_in": LONG, "for": list(range(40))}],
        "limits": {"why": LONG},
    }
    page = "http://127.0.0.1:41234/incidents/" + "0" * 70
    text = "\n".join(report.verdict_lines(verdict, page))
    return text.splitlines()


def test_every_line_is_folded_except_an_address() -> None:
    wide = [line for line in lines() if len(line) > report.WIDTH]

    assert [line.split()[0] for line in wide] == ["page"]


def test_further_lines_stand_under_the_first() -> None:
    first, second, *_ = report.row("hint", LONG).splitlines()

    assert len(second) - len(second.lstrip()) == first.index("a word")


def test_a_culprit_without_a_process_has_no_pid() -> None:
    culprit = {**examples.VERDICT["culprits"][0], "pid": None, "node": "", "detail": "never came"}

    text = "\n".join(report.verdict_lines({**examples.VERDICT, "culprits": [culprit]}, "page"))

    assert "None" not in text
    assert "never came" in text
