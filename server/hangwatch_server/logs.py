"""The server's log: one event per line on stderr, event name first, then key=value."""

from __future__ import annotations

import json
import logging
import sys

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

from hangwatch_server.errors import HangwatchError

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure(level: str = "info") -> None:
    """Send structlog and the standard library's warnings to stderr in one format."""
    number = _LEVELS.get(level.lower())
    if number is None:
        raise HangwatchError(
            f"'{level}' is no log level: set --log-level or HANGWATCH_LOG_LEVEL to "
            f"{', '.join(_LEVELS)}"
        )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def get() -> FilteringBoundLogger:
    """A logger that takes its configuration when it is used, not when it is made."""
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def _line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    stamp, level, name = event.pop("timestamp"), event.pop("level"), event.pop("event")
    exception = event.pop("exception", None)
    pairs = " ".join(f"{key}={_value(value)}" for key, value in event.items())
    line = f"{stamp} {level:<7} {name} {pairs}".rstrip()
    return line if exception is None else f"{line}\n{exception}"


def _value(value: object) -> str:
    text = str(value)
    # Quoted wherever a job could otherwise forge a second event or key by its text.
    return (
        text if text and all(c.isprintable() and c not in ' ="' for c in text) else json.dumps(text)
    )
