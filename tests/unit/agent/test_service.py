"""The loops of the node service outlive what they stumble over."""

from __future__ import annotations

import asyncio
import resource

import pytest

from hangwatch_agent import service
from hangwatch_agent.errors import SettingsError


def test_loop_that_fails_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "RETRY_S", 0.0)
    failures = iter([ValueError("a job's work"), OverflowError(), asyncio.CancelledError()])

    async def loop() -> None:
        raise next(failures)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(service._lasting(loop))

    assert next(failures, None) is None


def test_error_meant_for_the_operator_ends_the_agent() -> None:
    async def loop() -> None:
        raise SettingsError("no such file; check --ca-file")

    with pytest.raises(SettingsError):
        asyncio.run(service._lasting(loop))


def test_file_limit_is_raised_to_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair))

    service._raise_file_limit()

    assert limits == [(4096, 4096)]


def test_scan_of_a_crowded_node_comes_seldom_and_of_any_other_every_two_seconds() -> None:
    assert service.scan_pause_s(0.002) == service.SCAN_S
    assert service.scan_pause_s(0.05) == pytest.approx(20.0)
