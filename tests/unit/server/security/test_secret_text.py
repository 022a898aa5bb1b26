"""The form of a token's text."""

from __future__ import annotations

from hangwatch_server.security import secret_text


def test_two_tokens_differ_and_show_their_prefix() -> None:
    first, second = secret_text.new(), secret_text.new()

    assert first != second
    assert first == f"hw_{secret_text.prefix_of(first)}_{first.split('_', 2)[2]}"


def test_an_operators_own_text_shows_nothing_of_itself() -> None:
    assert secret_text.prefix_of("correct horse battery staple") == "custom"


def test_the_hash_does_not_hold_the_text() -> None:
    text = secret_text.new()

    assert len(secret_text.hash_of(text)) == 64
    assert text.split("_", 2)[2] not in secret_text.hash_of(text)
