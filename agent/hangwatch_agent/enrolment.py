"""The token that an agent shows: the one it was given, or one it is enrolled for and keeps.

An enrolment token is exchanged once for a token that speaks for this node alone; that one lies in
the state dir, readable by the agent's user only, and is used from then on. Only when the server no
longer accepts it is the node enrolled anew. Whatever fails here is raised as the link expects it,
which waits and tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from pathlib import Path

import msgspec

from hangwatch_agent import client, logs
from hangwatch_agent.errors import EnrolmentError, RefusedError, SettingsError
from hangwatch_agent.settings import AgentSettings

RETRY_S = 60.0
MAX_FILE = 10_000


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What the file in the state dir holds."""

    server: str
    node: str
    token: str


class Credentials:
    """The token of one agent."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._token = settings.token

    async def token(self) -> str:
        """The token to show now; "" where there is none, which the server then refuses in words.

        Raises RefusedError when the server does not enrol the node, EnrolmentError when it cannot
        be asked or the token cannot be kept, and SettingsError for a state dir that is not safe.
        """
        if not self._token and self._settings.enrol_token:
            self._token = await asyncio.to_thread(self._kept) or await self._enrolled()
        return self._token

    async def refused(self) -> None:
        """The server no longer accepts the token: one that came by enrolment is forgotten."""
        if self._settings.token or not self._settings.enrol_token:
            return
        self._token = ""
        with contextlib.suppress(OSError):
            await asyncio.to_thread(os.unlink, self._file())

    async def _enrolled(self) -> str:
        token = await asyncio.to_thread(self._exchange)
        logs.info("enrolled", server=self._settings.server, node=self._settings.node)
        return token

    def _exchange(self) -> str:
        settings = self._settings
        _prepare(settings.state_dir)  # first: a token that cannot be kept would cost a use
        try:
            caller = client.Client(settings.server, settings.enrol_token, settings.ca_file)
            token = caller.enrol(settings.node).token
        except client.ClientError as error:
            if error.status is None or error.status >= 500:
                raise EnrolmentError(str(error)) from error
            raise RefusedError(f"the node was not enrolled: {error}", RETRY_S) from error
        kept = Kept(server=settings.server, node=settings.node, token=token)
        _write(self._file(), msgspec.json.encode(kept))
        return token

    def _kept(self) -> str:
        """The token of an earlier enrolment of this node with this server, "" for none."""
        try:
            found = msgspec.json.decode(_read(self._file()), type=Kept)
        except FileNotFoundError:
            return ""
        except (OSError, msgspec.DecodeError) as error:
            logs.warning("kept_token_unusable", file=self._file(), why=error)
            return ""
        is_ours = (found.server, found.node) == (self._settings.server, self._settings.node)
        return found.token if is_ours else ""

    def _file(self) -> Path:
        """By node and server, since the agents of two servers or nodes may share the folder."""
        named = f"{self._settings.node} {self._settings.server}".encode()
        return self._settings.state_dir / f"{hashlib.sha256(named).hexdigest()[:16]}.token"


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.stat()
    except OSError as error:
        raise SettingsError(
            f"state dir {folder} cannot be used: {error.strerror}; give another: --state-dir DIR"
        ) from error
    if info.st_uid not in (0, os.geteuid()) or info.st_mode & 0o022:
        raise SettingsError(
            f"state dir {folder} can be written to by others, who could replace this agent's "
            f"token: chmod go-w {folder}, or give another: --state-dir DIR"
        )
    if not os.access(folder, os.W_OK):
        raise SettingsError(f"state dir {folder} is read-only; give another: --state-dir DIR")


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, and never readable by others."""
    new = path.with_suffix(".new")
    try:
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise EnrolmentError(
            f"the node's token cannot be kept in {path.parent}: {error.strerror}; make room "
            "there, or give another folder: --state-dir DIR"
        ) from error


def _read(path: Path) -> bytes:
    """A plain file of this user that nobody else can read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise PermissionError(0, "it is not this user's alone")
        return file.read(MAX_FILE)
