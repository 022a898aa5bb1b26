"""The server's log level."""

from __future__ import annotations

import pytest

from hangwatch_server import logs
from hangwatch_server.errors import HangwatchError


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(HangwatchError, match="debug, info, warning, error"):
        logs.configure("loud")
