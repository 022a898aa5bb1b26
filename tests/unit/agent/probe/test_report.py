"""The size limit of a beat."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from hangwatch_agent.probe import report


def payload(groups: int, entries: int) -> dict[str, Any]:
    listed = [
        {"name": str(number), "entries": [{"seq": seq} for seq in range(entries)]}
        for number in range(groups)
    ]
    return {"groups": listed, "calls": [], "p2p": [], "waits": [], "lacks": []}


def test_payload_that_fits_loses_nothing() -> None:
    found = json.loads(report.encoded(payload(2, 3)))

    assert "omitted" not in found
    assert len(found["groups"][0]["entries"]) == 3


def test_oldest_entries_go_first_and_are_counted() -> None:
    data = report.encoded(payload(4, 16), limit=500)

    found = json.loads(data)
    kept = [entry["seq"] for entry in found["groups"][0]["entries"]]

    assert len(data) <= 500
    assert kept == list(range(16 - len(kept), 16))
    assert found["omitted"] == 4 * (16 - len(kept))


def test_groups_go_only_when_no_entry_is_left() -> None:
    found = json.loads(report.encoded(payload(200, 1), limit=2000))

    assert 0 < len(found["groups"]) < 200
    assert found["omitted"] >= 200


def test_path_with_bytes_that_are_no_text_keeps_the_record_readable() -> None:
    data = report.encoded({**payload(1, 0), "script": "tr\udcffin-é.py"})

    assert msgspec.json.decode(data)["script"] == "tr?in-é.py"


def test_only_listed_environment_names_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")

    found = report.environment()

    assert found["RANK"] == "3"
    assert "AWS_SECRET_ACCESS_KEY" not in found
