"""Logs of the agent: one event per line, event name first, key=value after. Not a framework.

Values are written on one line and bounded, since a job can influence some of them.
"""

from __future__ import annotations

import logging
import sys

from hangwatch_agent.errors import SettingsError

MAX_VALUE = 500
LEVELS = ("debug", "info", "warning", "error")

_logger = logging.getLogger("hangwatch.agent")


def configure(level: str) -> None:
    """Send the agent's events of `level` and above to standard error; raise SettingsError."""
    if level.lower() not in LEVELS:
        raise SettingsError(
            f"'{level}' is no log level: set --log-level or HANGWATCH_LOG_LEVEL to "
            f"{', '.join(LEVELS)}"
        )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _logger.handlers[:] = [handler]
    _logger.setLevel(level.upper())
    _logger.propagate = False


def debug(event: str, **fields: object) -> None:
    _write(logging.DEBUG, event, fields)


def info(event: str, **fields: object) -> None:
    _write(logging.INFO, event, fields)


def warning(event: str, **fields: object) -> None:
    _write(logging.WARNING, event, fields)


def exception(event: str, **fields: object) -> None:
    """Log an event with the traceback of the exception being handled."""
    _logger.error("%s", line(event, fields), exc_info=True)


def _write(level: int, event: str, fields: dict[str, object]) -> None:
    if _logger.isEnabledFor(level):
        _logger.log(level, "%s", line(event, fields))


def line(event: str, fields: dict[str, object]) -> str:
    """The event as text: `linked server=ws://… node="a b"`."""
    return " ".join([event, *(f"{key}={_value(value)}" for key, value in fields.items())])


def _value(value: object) -> str:
    text = str(value)[:MAX_VALUE]
    text = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    return f'"{text}"' if " " in text or not text else text
