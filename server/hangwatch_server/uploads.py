"""Files that a person hands to the server: one request at a time is taken out of its multipart body
within limits, read in a thread, and kept nowhere. Whoever has to wait is told so before his files
travel.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from hangwatch_server import offline
from hangwatch_server.errors import ConflictError, HangwatchError
from hangwatch_server.offline import File, Report
from hangwatch_server.security import Caller, ForbiddenError

MAX_FILES = 1000
MAX_NAME = 400
GIVE_S = 120.0  # for the files to arrive: a slow line must not keep the turn for ever
READ_S = 20.0  # beyond it the rest is left unread: the server has jobs to watch
# Reading holds the interpreter's lock most of the time: a second reader would starve the watch.
_turn = threading.Lock()


class UploadError(HangwatchError):
    """No files, too many of them, or no form that holds files."""


def may(caller: Caller) -> bool:
    """Who may operate; and on a server that asks nobody for a token, whoever is on its machine."""
    return caller.is_anonymous or caller.may("operate")


async def form(request: Request, caller: Caller) -> FormData:
    """The form of this request; its body is read only for who may give files, in their turn.

    The turn is held until the request is over: its handler depends on `TURN`.
    """
    if not may(caller):
        raise ForbiddenError(
            "files are read for who may operate: sign in with a token made with `hangwatch token "
            "create --scope operate`, or run `hangwatch diagnose FILE…`, which needs no server"
        )
    if not getattr(request.state, "has_turn", False):
        if not _turn.acquire(blocking=False):
            raise ConflictError("other files are being read just now: try again in a few seconds")
        request.state.has_turn = True
    try:
        async with asyncio.timeout(GIVE_S):
            return await request.form(max_files=MAX_FILES)
    except TimeoutError as error:
        raise UploadError(
            f"the files did not arrive within {GIVE_S:.0f} s: `hangwatch diagnose FILE…` "
            "needs no server"
        ) from error
    except HTTPException as error:
        if error.status_code == 413:
            raise
        raise UploadError(
            f"the files cannot be taken: {error.detail} More than {MAX_FILES} files are for "
            "`hangwatch diagnose FOLDER`."
        ) from error


async def _turn_at_most(request: Request) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await request.close()  # the files of its form
        if getattr(request.state, "has_turn", False):
            _turn.release()


TURN = Depends(_turn_at_most)


async def report(request: Request, caller: Caller) -> Report:
    """The report on the files of this request."""
    given = await form(request, caller)
    files = [
        File(name=item.filename[-MAX_NAME:], data=await item.read())
        for _, item in given.multi_items()
        if isinstance(item, UploadFile) and item.filename
    ]
    if not files:
        raise UploadError("no file came with the request: choose recorder dumps or other files")
    return await asyncio.to_thread(_examine, files)


def _examine(files: list[File]) -> Report:
    end_s = time.monotonic() + READ_S
    return offline.examine(files, datetime.now(UTC), may_go_on=lambda: time.monotonic() < end_s)
