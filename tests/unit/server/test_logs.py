"""The server's log: its level, its two forms, and whose request a line belongs to."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from hangwatch_server import logs
from hangwatch_server.errors import HangwatchError


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Other tests find the logging that pytest made."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.parametrize(
    ("level", "form", "words"),
    [("loud", "text", "debug, info, warning, error"), ("info", "xml", "text or json")],
)
def test_an_unknown_level_or_form_is_refused_with_the_known_ones(
    level: str, form: str, words: str
) -> None:
    with pytest.raises(HangwatchError, match=words):
        logs.configure(level, form)


def test_line_as_json_has_every_field_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    logs.get().info("verdict_changed", job="b3", incident="i_1", index=7)

    line = json.loads(capsys.readouterr().err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "verdict_changed", "level": "info", "job": "b3", "incident": "i_1", "index": 7
    }  # fmt: skip


def test_traceback_stays_in_the_one_line_of_its_event(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    try:
        raise ValueError("of a test")
    except ValueError:
        logs.get().exception("look_failed", job="b3")

    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError: of a test" in json.loads(line)["exception"]


@pytest.mark.parametrize("form", logs.FORMATS)
def test_lines_of_a_request_carry_its_id_and_others_do_not(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure("info", form)

    with logs.about(request="run-17"):
        logs.get().info("capture_requested", job="b3")
    logs.get().info("tick")

    inside, outside = capsys.readouterr().err.splitlines()
    assert "run-17" in inside
    assert "run-17" not in outside


def test_what_libraries_say_comes_in_our_form(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")

    logging.getLogger("uvicorn.error").warning("Invalid HTTP request %s", "received.")

    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["logger"]) == ("library", "uvicorn.error")
    assert line["message"] == "Invalid HTTP request received."


def test_job_cannot_forge_a_second_event_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure()

    logs.get().info("verdict_changed", name='x"\n2026-11-20 error all_lost job=b3')

    assert len(capsys.readouterr().err.splitlines()) == 1
