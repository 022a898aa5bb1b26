"""Settings that a server refuses to start with: an unsafe exposure, a period of no length."""

from __future__ import annotations

import dataclasses

import pytest

from hangwatch_server import app
from hangwatch_server.errors import HangwatchError
from hangwatch_server.settings import ServerSettings


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "node-a"])  # noqa: S104 - nothing listens
def test_anonymous_reading_is_refused_beyond_loopback(host: str) -> None:
    with pytest.raises(HangwatchError, match=r"--host 127\.0\.0\.1"):
        app.check_exposure(ServerSettings(host=host, allow_anonymous=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_anonymous_reading_is_allowed_on_loopback(host: str) -> None:
    app.check_exposure(ServerSettings(host=host, allow_anonymous=True))


@pytest.mark.parametrize("name", ["tick_s", "interval_s", "lease_ttl_s"])
def test_a_period_of_no_length_is_refused_with_its_flag(name: str) -> None:
    settings = dataclasses.replace(ServerSettings(), **{name: 0.0})

    with pytest.raises(HangwatchError, match=f"--{name.replace('_', '-')}"):
        app.create_app(settings)
