"""What a kind of channel asks for: fields with their meaning, and checks that answer in words."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from hangwatch_server.errors import HangwatchError

MAX_CHARS = 2000
KEY_PREFIX = "whsec_"
# Standard Webhooks: between 24 and 64 bytes of randomness.
LEAST_KEY_BYTES, MOST_KEY_BYTES = 24, 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
Check = Callable[[str], None]


class BadChannelError(HangwatchError):
    """What was given for a channel cannot work; the text says which part and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One thing that a kind asks for; secrets are written, and never shown again."""

    name: str
    label: str
    help: str
    example: str = ""
    is_secret: bool = False
    is_required: bool = False
    choices: tuple[str, ...] = ()
    check: Check | None = None


def check(
    fields: tuple[Field, ...], options: Mapping[str, str], secret_names: frozenset[str]
) -> None:
    """Raise BadChannelError unless names, required ones and values are as the fields say."""
    _refuse_unknown("option", options, {one.name for one in fields if not one.is_secret})
    _refuse_unknown("secret", secret_names, {one.name for one in fields if one.is_secret})
    for field in fields:
        is_given = field.name in secret_names if field.is_secret else bool(options.get(field.name))
        if field.is_required and not is_given:
            raise BadChannelError(f"{field.label} is missing: {field.help}")
        if not field.is_secret and is_given:
            check_value(field, options[field.name])


def check_value(field: Field, value: str) -> None:
    """Raise BadChannelError, which never repeats a secret, unless the value can be this field's."""
    if len(value) > MAX_CHARS:
        raise BadChannelError(f"{field.label} is too long: at most {MAX_CHARS} characters")
    if _CONTROL.search(value):
        raise BadChannelError(f"{field.label} holds a control character or a line break")
    if field.choices and value not in field.choices:
        raise BadChannelError(f"{field.label} is one of {', '.join(field.choices)}")
    if field.check is not None:
        try:
            field.check(value)
        except BadChannelError as error:
            raise BadChannelError(f"{field.label} {error}") from None


def is_address(value: str) -> None:
    """An http or https address with a host, and no login in it."""
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadChannelError("is not an address: write it as https://host/path") from None
    if parts.scheme not in ("https", "http") or not host or not _HOST.fullmatch(host):
        raise BadChannelError("is not an address: write it as https://host/path")
    if "@" in parts.netloc:
        raise BadChannelError("holds a login before its host: use the field for it instead")
    if parts.fragment or " " in value or not value.isascii():
        raise BadChannelError("holds a space, a # or a letter that must be percent-encoded")


def is_signing_key(value: str) -> None:
    if not LEAST_KEY_BYTES <= len(key_bytes(value)) <= MOST_KEY_BYTES:
        raise BadChannelError(
            f"is not a signing key: {KEY_PREFIX} and {LEAST_KEY_BYTES} to {MOST_KEY_BYTES} bytes "
            f'in Base64, as from: echo "{KEY_PREFIX}$(openssl rand -base64 24)"'
        )


def key_bytes(value: str) -> bytes:
    """The bytes of `whsec_…`; empty where it is none."""
    if not value.startswith(KEY_PREFIX):
        return b""
    try:
        return base64.b64decode(value.removeprefix(KEY_PREFIX), validate=True)
    except binascii.Error:
        return b""


def host_of(url: str) -> str:
    """`hooks.example.org:8443`: what may be shown of an address that is a secret."""
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return ""


def _refuse_unknown(noun: str, given: Mapping[str, str] | frozenset[str], known: set[str]) -> None:
    for name in given:
        if name not in known:
            has = ", ".join(sorted(known)) or "none"
            raise BadChannelError(
                f"'{name[:60]}' is no {noun} of this kind of channel: it has {has}"
            )
