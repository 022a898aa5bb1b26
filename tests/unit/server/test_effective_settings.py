"""The settings as an administrator sees them: secrets hidden, sources named, what was set first."""

from __future__ import annotations

from hangwatch_server.settings import ServerSettings, effective

SETTINGS = ServerSettings(
    port=9000, database_url="postgresql://ada:hunter2@host/name", retention_days=7.0
)
ORIGINS = {"port": "flag --port", "database_url": "environment HANGWATCH_DATABASE_URL_FILE"}


def test_no_secret_is_shown() -> None:
    rows = {row.key: row for row in effective.rows(SETTINGS, ORIGINS)}

    assert rows["database_url"].value == effective.HIDDEN
    assert "hunter2" not in str(rows)
    assert rows["bootstrap_token"].value == ""


def test_what_was_set_comes_first_with_its_source() -> None:
    rows = effective.rows(SETTINGS, ORIGINS)

    assert {(row.key, row.source) for row in rows[:2]} == set(ORIGINS.items())
    assert {row.source for row in rows[2:]} == {"default"}


def test_every_setting_says_what_it_does_and_why_it_has_its_default() -> None:
    assert all(row.help and row.why for row in effective.rows(SETTINGS, {}))
