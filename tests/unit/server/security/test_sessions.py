"""The signed cookie and its CSRF text."""

from __future__ import annotations

import stat
from pathlib import Path

from hangwatch_server.security import sessions

SIGNER = sessions.Sessions(b"k" * 32)


def test_a_session_is_read_back_until_it_is_over() -> None:
    cookie = SIGNER.issue("a1b2", now_s=1000.0)

    session = SIGNER.read(cookie, now_s=1000.0 + sessions.LIFETIME_S - 1)

    assert session is not None
    assert session.secret_hash == "a1b2"
    assert SIGNER.read(cookie, now_s=1000.0 + sessions.LIFETIME_S) is None


def test_a_changed_cookie_is_nobodys() -> None:
    cookie = SIGNER.issue("a1b2", now_s=1000.0)

    for index in range(len(cookie)):
        changed = cookie[:index] + ("x" if cookie[index] != "x" else "y") + cookie[index + 1 :]
        assert SIGNER.read(changed, now_s=1000.0) is None


def test_a_cookie_of_another_server_is_nobodys() -> None:
    cookie = sessions.Sessions(b"o" * 32).issue("a1b2", now_s=1000.0)

    assert SIGNER.read(cookie, now_s=1000.0) is None


def test_garbage_is_nobodys() -> None:
    for text in ("", ".", "a.b", "é.ü", "x" * 5000):
        assert SIGNER.read(text, now_s=0.0) is None


def test_the_csrf_text_of_one_session_is_not_good_for_another() -> None:
    first = SIGNER.read(SIGNER.issue("a1b2", 0.0), 0.0)
    second = SIGNER.read(SIGNER.issue("a1b2", 0.0), 0.0)
    assert first is not None
    assert second is not None

    assert SIGNER.is_csrf_text(first, SIGNER.csrf_text(first))
    assert not SIGNER.is_csrf_text(first, SIGNER.csrf_text(second))
    assert not SIGNER.is_csrf_text(first, "")


def test_the_key_is_kept_private_and_survives(tmp_path: Path) -> None:
    key = sessions.load_key(tmp_path / "data")

    assert sessions.load_key(tmp_path / "data") == key
    assert stat.S_IMODE((tmp_path / "data" / sessions.KEY_FILE).stat().st_mode) == 0o600


def test_a_key_that_was_cut_short_is_replaced(tmp_path: Path) -> None:
    (tmp_path / sessions.KEY_FILE).write_bytes(b"short")

    assert len(sessions.load_key(tmp_path)) == sessions.KEY_BYTES
