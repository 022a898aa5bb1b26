"""The units as systemd itself reads them, offline, and that what they set exists."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hangwatch_agent import settings as agent_settings
from hangwatch_agent.settings import AgentSettings
from hangwatch_server.settings import ServerSettings

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
# systemd's own score: from 0, the safest, to 10; what has no protection at all gets over 9.
MOST_EXPOSED = {"hangwatch-agent": 4.0, "hangwatch-server": 1.5}
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze here"
)


def analyze(*words: str) -> str:
    done = subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_is_understood_to_the_last_word(unit: Path, tmp_path: Path) -> None:
    """With a program that is there, since the package's own is not installed in /opt."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/hangwatch/bin/hangwatch", sys.executable))

    assert analyze("verify", "--man=no", str(copy)) == ""


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_is_hardened(unit: Path) -> None:
    told = analyze("security", "--offline=true", str(unit))
    score = re.search(r"exposure level for \S+: ([\d.]+)", told)

    assert score is not None
    assert float(score[1]) <= MOST_EXPOSED[unit.stem]


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_every_setting_exists_and_secrets_are_credentials(path: Path) -> None:
    known = agent_settings.keys(AgentSettings) | agent_settings.keys(ServerSettings)
    text = path.read_text()

    for name, value in re.findall(r"HANGWATCH_([A-Z_]+)=(\S*)", text):
        key = name.lower()
        if key.endswith("_file") and key not in known:
            assert value.startswith("%d/")
            assert f"LoadCredential={value.removeprefix('%d/')}:/etc/hangwatch/" in text
            key = key.removesuffix("_file")
        assert key in known, name
        assert "token" not in key or f"{name}=%d/" in text


def test_agent_keeps_the_records_of_running_jobs_over_its_restart() -> None:
    text = (FOLDER / "hangwatch-agent.service").read_text()

    assert "RuntimeDirectoryPreserve=yes" in text
    assert "RuntimeDirectoryMode=1777" in text


def test_agent_has_the_same_powers_as_in_kubernetes() -> None:
    unit = (FOLDER / "hangwatch-agent.service").read_text()
    manifest = (FOLDER.parent / "kubernetes" / "base" / "agent.yaml").read_text()
    (own,) = re.findall(r"^CapabilityBoundingSet=(.+)$", unit, re.MULTILINE)
    (added,) = re.findall(r"add: \[(.+)\]", manifest)

    assert {name.removeprefix("CAP_") for name in own.split()} == set(re.findall(r'"(\w+)"', added))
