"""How plain data becomes JSONB and text columns, and back. Not a migration tool for old shapes.

Postgres accepts no NUL character in text or JSONB, yet whatever a job can influence may hold one:
it is stored as U+FFFD.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

T = TypeVar("T")

# An escaped NUL, but not an escaped backslash that happens to stand before "u0000".
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


class PlainText(TypeDecorator[str]):
    """TEXT that takes any Python string."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value.replace("\0", "\ufffd") if value is not None else None


def dumps(value: object) -> str:
    """Dataclasses and msgspec Structs, however nested, as JSON text that Postgres accepts."""
    text = msgspec.json.encode(value).decode()
    return _ESCAPED_NUL.sub(r"\1\\ufffd", text) if "\\u0000" in text else text


def loads(data: str | bytes) -> Any:  # JSON's own types: what is stored decides
    return msgspec.json.decode(data)


def restore(value: object, into: type[T]) -> T:
    """What `loads` gave, as the type that was stored; msgspec.ValidationError if it is not."""
    return msgspec.convert(value, into, str_keys=True)
