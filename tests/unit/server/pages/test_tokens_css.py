"""Contrast of the two themes (WCAG 2.2: text 4.5:1, marks 3:1); colours come from tokens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[4] / "web/static/css"
TEXT = ("ink", "muted", "accent", "hung", "suspected", "slow", "expected", "healthy", "unknown",
        "finished", "failed")  # fmt: skip
MARKS = ("rank-waiting", "rank-healthy")
THEME_BLOCK = re.compile(r'data-theme="(light|dark)"\] \{(.*?)\n\}', re.DOTALL)
COLOUR = re.compile(r"--([\w-]+): (#[0-9a-f]{6});")


def _themes() -> dict[str, dict[str, str]]:
    source = (CSS / "tokens.css").read_text()
    return {name: dict(COLOUR.findall(body)) for name, body in THEME_BLOCK.findall(source)}


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", TEXT)
def test_text_is_readable_on_both_grounds(theme: str, name: str) -> None:
    colours = _themes()[theme]

    assert _contrast(colours[name], colours["ground"]) >= 4.5
    assert _contrast(colours[name], colours["raised"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", MARKS)
def test_marks_stand_out_from_the_ground(theme: str, name: str) -> None:
    colours = _themes()[theme]

    assert _contrast(colours[name], colours["ground"]) >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["hung", "suspected", "failed"])
def test_a_state_is_readable_on_its_own_tint(theme: str, name: str) -> None:
    colours = _themes()[theme]

    assert _contrast(colours[name], colours[f"{name}-soft"]) >= 4.5


def test_the_dark_theme_is_the_same_chosen_or_followed() -> None:
    source = (CSS / "tokens.css").read_text()
    followed = dict(COLOUR.findall(source[source.index("@media") :]))

    assert followed == _themes()["dark"]


@pytest.mark.parametrize("name", ["base.css", "components.css"])
def test_colours_come_from_tokens_alone(name: str) -> None:
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*;)", (CSS / name).read_text())
