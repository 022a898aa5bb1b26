"""The REST client's addresses and words, without a server."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize(
    "given",
    ["", "ftp://host", "http://", "http://[::1", "http://a b", "http://h:port", "http://h:99999"],
)
def test_what_is_no_address_is_refused_with_an_example(given: str) -> None:
    with pytest.raises(client.ClientError, match="http://HOST:PORT"):
        client.Client(given)


def test_a_failed_call_is_also_an_os_error() -> None:
    error = client.ClientError("no server", 503)

    assert isinstance(error, OSError)
    assert (str(error), error.status) == ("no server", 503)


@pytest.mark.parametrize("token", ["hw_\u20ac", "h\xe9", "hw_a\nb"])
def test_a_damaged_token_is_said_before_anything_is_sent(token: str) -> None:
    with pytest.raises(client.ClientError, match="copy it again") as caught:
        client.Client("http://127.0.0.1:1", token)

    assert token not in str(caught.value)


def test_an_empty_job_name_is_refused_with_the_next_command() -> None:
    with pytest.raises(client.ClientError, match="hangwatch status"):
        client.Client("http://127.0.0.1:1").job("")


def test_a_missing_certificate_file_is_said_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(client.ClientError, match="HANGWATCH_CA_FILE"):
        client.Client("https://host", ca_file=tmp_path / "absent.pem")
