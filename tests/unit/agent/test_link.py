"""Addresses, waits and sizes of the link; the connection itself is tested for real elsewhere."""

from __future__ import annotations

import pytest

from hangwatch_agent import link
from hangwatch_agent.errors import SettingsError


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("http://h:8080", "ws://h:8080/api/v1/agent/stream"),
        ("https://h/", "wss://h/api/v1/agent/stream"),
        ("ws://h/prefix", "ws://h/prefix/api/v1/agent/stream"),
        ("h:8080", "ws://h:8080/api/v1/agent/stream"),
        ("wss://h/api/v1/agent/stream", "wss://h/api/v1/agent/stream"),
    ],
)
def test_address_of_the_stream(server: str, url: str) -> None:
    assert link.stream_url(server) == url


@pytest.mark.parametrize("server", ["ftp://h", "http://", "unix:///x"])
def test_address_that_cannot_be_used_is_refused(server: str) -> None:
    with pytest.raises(SettingsError, match="http://HOST:PORT"):
        link.stream_url(server)


def test_backoff_grows_to_its_limit_and_is_spread() -> None:
    assert link.backoff_s(1, 0.0) == pytest.approx(0.25)
    assert link.backoff_s(1, 1.0) == pytest.approx(0.5)
    assert link.backoff_s(50, 1.0) == pytest.approx(link.MAX_BACKOFF_S)
