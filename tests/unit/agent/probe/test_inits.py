"""What an init method may show."""

from __future__ import annotations

from hangwatch_agent.probe import inits


def test_init_method_loses_user_password_and_query() -> None:
    found = inits.without_secrets("tcp://user:secret@node-a:2950/x?token=abc#frag")

    assert found == "tcp://node-a:2950/x"


def test_file_method_keeps_its_path() -> None:
    assert inits.without_secrets("file:///shared/store") == "file:///shared/store"


def test_nonsense_method_is_dropped() -> None:
    assert inits.without_secrets("tcp://[::1") == ""


def test_ordinary_thread_waits_for_nothing() -> None:
    assert inits.Inits().read() == []
