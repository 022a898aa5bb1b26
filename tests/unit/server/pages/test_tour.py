"""The tour of the pages gets the pictures that were taken, and is the same when taken again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.web import screenshots

MARKED = "# Tour\n\n<!-- picture real-job: A job -->\n\nWords.\n"


def test_a_mark_gets_its_picture_in_both_themes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screenshots, "IMAGES", tmp_path)
    (tmp_path / "real-job-light.png").touch()

    once = screenshots.illustrated(MARKED)

    assert 'srcset="images/real-job-dark.png"' in once
    assert '<img alt="A job" src="images/real-job-light.png">' in once
    assert once.endswith("\n\nWords.\n")
    assert screenshots.illustrated(once) == once


def test_a_mark_without_a_picture_stays_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screenshots, "IMAGES", tmp_path)

    assert screenshots.illustrated(MARKED) == MARKED


def test_the_tour_has_a_mark_for_pictures_that_the_command_takes() -> None:
    verdict = {"job": "j", "incident": "i", "culprits": [{"rank": 5}]}
    views = screenshots._views(verdict)
    marks = [name for name, _ in screenshots.MARK.findall(screenshots.TOUR.read_text())]

    assert marks
    assert {mark.partition("-")[2] for mark in marks} <= set(views)
    assert {mark.partition("-")[0] for mark in marks} == {"real", "simulated"}
