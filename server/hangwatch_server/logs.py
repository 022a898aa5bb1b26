"""The server's log: one event per line on stderr, its name first, then key=value; or all as JSON.

A line written while a request is answered carries its id: the `request_id` of an error leads
there. Lines of libraries come in the same form.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import AbstractContextManager

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from hangwatch_server.errors import HangwatchError

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS = ("text", "json")


def configure(level: str = "info", form: str = "text") -> None:
    """Send structlog and the standard library's warnings to stderr in one format."""
    number = _LEVELS.get(level.lower())
    if number is None:
        raise HangwatchError(
            f"'{level}' is no log level: set --log-level or HANGWATCH_LOG_LEVEL to "
            f"{', '.join(_LEVELS)}"
        )
    if form not in FORMATS:
        raise HangwatchError(
            f"'{form}' is no format of a log: set --log-format or HANGWATCH_LOG_FORMAT to "
            f"{' or '.join(FORMATS)}"
        )
    render: Processor = structlog.processors.JSONRenderer() if form == "json" else _line
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward(logging.WARNING)], level=logging.WARNING, force=True)


def get() -> FilteringBoundLogger:
    """A logger that takes its configuration when it is used, not when it is made."""
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def about(**ids: str) -> AbstractContextManager[None]:
    """Give these ids to every line that is written inside, also by code that knows none of them."""
    return structlog.contextvars.bound_contextvars(**ids)


class _Forward(logging.Handler):
    """What the standard library's loggers say, as lines of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        get().log(
            record.levelno,
            "library",
            logger=record.name,
            message=record.getMessage(),
            exc_info=record.exc_info,
        )


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
