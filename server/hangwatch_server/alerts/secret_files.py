"""Secrets of channels: in the database as they are, or as the name of a file in one folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from hangwatch_server.errors import HangwatchError

MAX_BYTES = 8192
# A plain name: with a slash or leading dot it could lead out of the folder.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
Stored = Mapping[str, Mapping[str, str]]  # name → {"value": …} or {"file": …}


class SecretError(HangwatchError):
    """A secret cannot be read; the text says from where, and never what."""


def is_file_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def read(stored: Stored, folder: Path) -> dict[str, str]:
    """The secrets themselves; raise SecretError for a file that cannot be read."""
    return {
        name: _from_file(folder, entry["file"]) if "file" in entry else entry["value"]
        for name, entry in stored.items()
    }


def _from_file(folder: Path, name: str) -> str:
    if not is_file_name(name):
        raise SecretError(f"'{name[:60]}' is not the plain name of a file in {folder}")
    path = folder / name
    try:
        # Not through a link: who may write in the folder must not choose what the server reads.
        # Mounted secrets are links within their folder, so where one leads is looked at instead.
        real = Path(os.path.realpath(path))
        if folder.resolve() not in real.parents:
            raise SecretError(f"the secret's file {path} is a link that leads out of {folder}")
        text = real.read_bytes()[: MAX_BYTES + 1].decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(f"the secret's file {path} cannot be read: {error}") from error
    if len(text) > MAX_BYTES or not text.strip():
        raise SecretError(f"the secret's file {path} is empty or over {MAX_BYTES} bytes")
    return text.strip()
