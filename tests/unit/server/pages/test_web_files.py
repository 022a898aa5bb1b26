"""What lies under web/: vendored files are the registry's, nothing is inline, files are short."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEB = ROOT / "web"
SCRIPTS = sorted((WEB / "static/js").glob("*.js"))
TEMPLATES = sorted((WEB / "templates").glob("*.html"))
LONGEST_SCRIPT = 300


def _name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("vendor", [WEB / "vendor", ROOT / "tests/web/vendor"], ids=str)
def test_vendored_files_have_the_written_sums_and_no_others_lie_there(vendor: Path) -> None:
    written = dict(re.findall(r"\| (\S+/\S+) \| `(\S+)` \|", (vendor / "VENDOR.md").read_text()))
    found = {
        str(path.relative_to(vendor)): base64.b64encode(
            hashlib.sha512(path.read_bytes()).digest()
        ).decode()
        for path in vendor.rglob("*")
        if path.is_file() and path.name != "VENDOR.md"
    }

    assert found == written


@pytest.mark.parametrize("path", SCRIPTS, ids=_name)
def test_scripts_are_short_and_checked(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert lines[0] == "// @ts-check"
    assert len(lines) < LONGEST_SCRIPT


@pytest.mark.parametrize("path", TEMPLATES, ids=_name)
def test_templates_have_no_inline_script_style_or_unescaped_text(path: Path) -> None:
    source = path.read_text()

    assert not re.search(r"<script(?![^>]*\bsrc=)", source)
    assert not re.search(r"<style|\sstyle=|\son\w+=", source)
    assert not re.search(r"\|\s*safe\b|javascript:", source)


@pytest.mark.parametrize("path", [*TEMPLATES, *SCRIPTS], ids=_name)
def test_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    assert not re.search(r"https?://(?!www\.w3\.org)", path.read_text())
