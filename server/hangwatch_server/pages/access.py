"""What page handlers receive: as those of the API, and what of an address no text may hold."""

from __future__ import annotations

from hangwatch_server.wiring import (
    ADMIN,
    BUNDLE_PLACE,
    CAPTURE_LIMIT,
    OPERATE,
    READ,
    STREAM_PLACE,
    Admin,
    House,
    Operator,
    Reader,
    services_of,
)

__all__ = [
    "ADMIN",
    "BUNDLE_PLACE",
    "CAPTURE_LIMIT",
    "NO_NUL",
    "OPERATE",
    "READ",
    "STREAM_PLACE",
    "Admin",
    "House",
    "Operator",
    "Reader",
    "services_of",
]
NO_NUL = r"^[^\x00]*$"  # Postgres texts cannot hold NUL
