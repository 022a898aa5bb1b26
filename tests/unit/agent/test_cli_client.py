"""The REST client's addresses and words, without a server."""

from __future__ import annotations

import pytest

from hangwatch_agent import client


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://host:8042", "http://host:8042"),
        ("http://host:8042/", "http://host:8042"),
        ("host:8042", "http://host:8042"),
        ("wss://host/hang/", "https://host/hang"),
        ("ws://host:1", "http://host:1"),
    ],
)
def test_an_address_is_understood_as_people_and_agents_write_it(given: str, base: str) -> None:
    assert client.Client(given).server == base


@pytest.mark.parametrize("given", ["", "ftp://host", "http://"])
def test_what_is_no_address_is_refused_with_an_example(given: str) -> None:
    with pytest.raises(client.ClientError, match="http://HOST:PORT"):
        client.Client(given)


def test_a_failed_call_is_also_an_os_error() -> None:
    error = client.ClientError("no server", 503)

    assert isinstance(error, OSError)
    assert (str(error), error.status) == ("no server", 503)
