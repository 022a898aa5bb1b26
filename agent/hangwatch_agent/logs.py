"""Logs of the agent: one event per line, event name first, key=value after, or all as JSON.

Values are written on one line and bounded, since a job can influence some of them.
"""

from __future__ import annotations

import json
import logging
import sys
import time

from hangwatch_agent.errors import SettingsError

MAX_VALUE = 500
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_logger = logging.getLogger("hangwatch.agent")


def configure(level: str, form: str = "text") -> None:
    """Send the agent's events of `level` and above to standard error; raise SettingsError."""
    if form not in FORMATS:
        raise SettingsError(
            f"'{form}' is no format of a log: set --log-format or HANGWATCH_LOG_FORMAT to "
            f"{' or '.join(FORMATS)}"
        )
    if level.lower() not in LEVELS:
        raise SettingsError(
            f"'{level}' is no log level: set --log-level or HANGWATCH_LOG_LEVEL to "
            f"{', '.join(LEVELS)}"
        )
    handler = logging.StreamHandler(sys.stderr)
    as_text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_Json() if form == "json" else as_text)
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
    _logger.error("%s", line(event, fields), exc_info=True, extra=_extra(event, fields))


def _write(level: int, event: str, fields: dict[str, object]) -> None:
    if _logger.isEnabledFor(level):
        _logger.log(level, "%s", line(event, fields), extra=_extra(event, fields))


def _extra(event: str, fields: dict[str, object]) -> dict[str, object]:
    return {"event": event, "fields": fields}


class _Json(logging.Formatter):
    """The names of the server's lines, so that one query finds both."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        found = {
            "timestamp": f"{at}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.getMessage()),
        }
        for key, value in getattr(record, "fields", {}).items():
            is_plain = isinstance(value, int | float | bool) or value is None
            found.setdefault(key, value if is_plain else str(value)[:MAX_VALUE])
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found)


def line(event: str, fields: dict[str, object]) -> str:
    """The event as text: `linked server=ws://… node="a b"`."""
    return " ".join([event, *(f"{key}={_value(value)}" for key, value in fields.items())])


def _value(value: object) -> str:
    text = str(value)[:MAX_VALUE]
    text = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    return f'"{text}"' if " " in text or not text else text
