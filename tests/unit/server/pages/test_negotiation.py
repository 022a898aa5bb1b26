"""One address, three forms: what `Accept` asks for."""

from __future__ import annotations

import pytest
from fastapi import Request

from hangwatch_server.pages import negotiation


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "html"),
        ("*/*", "html"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"),
        ("application/json", "json"),
        ("text/plain", "text"),
        ("application/json;q=0.4, text/plain;q=0.9", "text"),
        ("text/plain;q=0", "html"),
        ("text/plain;q=soon", "html"),
        ("TEXT/PLAIN", "text"),
    ],
)
def test_the_form_with_the_highest_weight_is_given(accept: str, form: str) -> None:
    request = Request({"type": "http", "headers": [(b"accept", accept.encode())]})

    assert negotiation.wanted(request) == form
