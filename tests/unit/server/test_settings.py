"""The server's settings: complete for detection, explained, and the same defaults."""

from __future__ import annotations

import dataclasses

from hangwatch_server import lifespan
from hangwatch_server.detect import DetectSettings
from hangwatch_server.settings import ServerSettings


def test_every_limit_of_detection_is_a_setting_with_the_same_default() -> None:
    assert lifespan.detect_settings(ServerSettings()) == DetectSettings()


def test_every_setting_says_what_it_does_and_why_it_has_its_default() -> None:
    unexplained = [
        item.name
        for item in dataclasses.fields(ServerSettings)
        if not item.metadata["help"] or not item.metadata["why"]
    ]

    assert unexplained == []


def test_secrets_are_marked() -> None:
    marked = {item.name for item in dataclasses.fields(ServerSettings) if item.metadata["secret"]}

    assert marked == {
        "bootstrap_token",
        "database_url",
        "heartbeat_url",
        "oidc_client_secret",
        "outgoing_proxy",
        "redis_url",
    }
