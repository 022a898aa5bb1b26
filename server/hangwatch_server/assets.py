"""Where files that are no Python modules lie: in the wheel beside this one, or in the checkout.

Editable installs do not apply the wheel's force-include table, so both places are looked at. Not
for anything that a user may replace at run time.
"""

from __future__ import annotations

from pathlib import Path

from hangwatch_server.errors import HangwatchError

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def web() -> Path:
    """The folder with `templates/`, `static/` and `vendor/`."""
    return _find("_web", "web")


def migrations() -> Path:
    """The folder with Alembic's `env.py` and `versions/`."""
    return _find("_migrations", "migrations")


def programs() -> Path:
    """The folder with the small training programs that the demo runs."""
    return _find("_programs", "tests/programs")


def _find(in_wheel: str, in_checkout: str) -> Path:
    for folder in (_PACKAGE / in_wheel, _CHECKOUT / in_checkout):
        if folder.is_dir():
            return folder
    raise HangwatchError(
        f"the folder '{in_checkout}' is missing from this installation, which is incomplete: "
        "run pip install --force-reinstall 'hangwatch[server]'"
    )
