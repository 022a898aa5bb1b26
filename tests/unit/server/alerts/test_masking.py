"""No secret of a channel comes back in what its receiver says."""

from __future__ import annotations

import pytest

from hangwatch_server.alerts.masking import MASK, masked

URL = "https://hooks.example.org:8443/services/T0001234/kEy%20of-the-channel?sig=s1gnature99"


@pytest.mark.parametrize(
    "said",
    [
        "the receiver answered 404: Cannot POST /services/T0001234/kEy%20of-the-channel",
        "the receiver answered 404: no route /services/T0001234/kEy of-the-channel",
        f"the receiver answered 301, a redirect to {URL}: redirects are not followed",
        "the receiver answered 301, a redirect to https://other/x?sig=s1gnature99",
        "the receiver answered 400: unknown key kEy%20of-the-channel",
        "the receiver answered 400: a long text that ends inside kEy%20of-th",
        "the service did not take it: POST /services/T0001234/kEy%20of…",
    ],
)
def test_no_part_of_an_address_is_repeated(said: str) -> None:
    found = masked(said, [URL])

    assert MASK in found
    assert not [part for part in ("kEy", "s1gnature", "of-the") if part in found]


def test_a_token_after_bearer_is_a_secret_by_itself() -> None:
    found = masked("401: token xoxb-123456-abcdef is bad", ["Bearer xoxb-123456-abcdef"])

    assert found == f"401: token {MASK} is bad"


def test_the_host_and_what_says_no_secret_stay() -> None:
    said = "hooks.example.org answered 503: try again, the hooks of v2 are away"

    assert masked(said, [URL]) == said


def test_an_address_that_cannot_be_read_hides_nothing_and_fails_nothing() -> None:
    assert masked("no answer", ["http://[oops"]) == "no answer"
