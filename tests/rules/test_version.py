"""Holds the one version number of the distribution: its two packages may not disagree."""

from __future__ import annotations

import tomllib
from pathlib import Path

import hangwatch_agent
import hangwatch_server

ROOT = Path(__file__).resolve().parents[2]


def test_server_and_agent_have_the_version_that_the_package_is_built_with() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built_from = ROOT / table["tool"]["hatch"]["version"]["path"]

    assert built_from == ROOT / "agent" / "hangwatch_agent" / "__init__.py"
    assert "version" in table["project"]["dynamic"]
    assert hangwatch_server.__version__ == hangwatch_agent.__version__
