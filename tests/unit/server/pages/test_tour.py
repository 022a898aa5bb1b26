"""The tour of the pages gets the pictures that were taken, and is the same when taken again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.web import screenshots

MARKED = "# Tour\n\n<!-- picture real-job: A job -->\n\nWords.\n"


def _taken(folder: Path, name: str) -> None:
    for theme in screenshots.THEMES:
        (folder / f"{name}-{theme}.png").touch()


@pytest.fixture(autouse=True)
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(screenshots, "IMAGES", tmp_path)
    return tmp_path


def test_a_mark_gets_its_picture_in_both_themes_once(images: Path) -> None:
    _taken(images, "real-job")

    once = screenshots.illustrated(MARKED, "docs/images")

    assert 'srcset="docs/images/real-job-dark.png"' in once
    assert '<img alt="A job" src="docs/images/real-job-light.png">' in once
    assert once.endswith("\n\nWords.\n")
    assert screenshots.illustrated(once, "docs/images") == once


def test_a_mark_without_a_picture_in_both_themes_stays_a_mark(images: Path) -> None:
    (images / "real-job-light.png").touch()

    assert screenshots.illustrated(MARKED, "images") == MARKED


def test_only_what_is_missing_is_taken_again(images: Path) -> None:
    for view in screenshots.VIEWS[1:]:
        _taken(images, f"simulated-{view}")

    wanted = screenshots._wanted("simulated", are_kept=True)

    assert [(one.view, one.theme) for one in wanted] == [
        ("overview", "light"),
        ("overview", "dark"),
    ]


def test_every_mark_is_for_a_picture_that_the_command_takes() -> None:
    takes = {
        f"{name}-{one.view}"
        for name in ("real", "simulated")
        for one in screenshots._wanted(name, are_kept=False)
    }
    marks = [
        name
        for file in screenshots.ILLUSTRATED
        for name, _ in screenshots.MARK.findall(file.read_text(encoding="utf-8"))
    ]

    assert set(marks) <= takes
    assert {f"{job}-{view}" for job in ("real", "simulated") for view in screenshots.VIEWS} <= set(
        marks
    )


def test_every_view_has_an_address() -> None:
    verdict = {"job": "j", "incident": "i", "culprits": [{"rank": 5, "node": "node-b"}]}

    found = screenshots.addresses(verdict, ["c", "d"])

    assert set(found) == {*screenshots.VIEWS, *screenshots.ONCE}
