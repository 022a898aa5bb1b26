"""The system account that Postgres runs as: ours, or an unprivileged one when we are root.

Postgres refuses to run as root. Nothing here changes the mode of a folder; it only asks.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from hangwatch_server.errors import DataFolderError

UNPRIVILEGED = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    uid: int
    gid: int
    is_other: bool  # not the account that this process runs as

    def can_reach(self, path: Path) -> bool:
        """Whether the account may enter every folder above `path` (which must exist).

        Judged by mode bits: access lists and security modules may still say no, and then Postgres's
        own words are shown.
        """
        if not self.is_other:
            return True
        target = path.resolve()
        return all(self._may_enter(folder) for folder in target.parents)

    def may_enter(self, folder: Path) -> bool:
        return not self.is_other or self._may_enter(folder)

    def _may_enter(self, folder: Path) -> bool:
        facts = folder.stat()
        if facts.st_uid == self.uid:
            return bool(facts.st_mode & stat.S_IXUSR)
        if facts.st_gid == self.gid:
            return bool(facts.st_mode & stat.S_IXGRP)
        return bool(facts.st_mode & stat.S_IXOTH)


def current() -> str:
    """The name of this process's own account, which Postgres's peer login needs."""
    return _entry(os.geteuid()).pw_name


def for_postgres() -> Account:
    uid = os.geteuid()
    if uid != 0:
        return Account(name=_entry(uid).pw_name, uid=uid, gid=os.getegid(), is_other=False)
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError as error:
        raise DataFolderError(
            f"Postgres does not run as root, and this system has no user '{UNPRIVILEGED}': run "
            "Hangwatch as an ordinary user, or give a database of your own with --database-url"
        ) from error
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, is_other=True)


def _entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError as error:
        raise DataFolderError(
            f"user id {uid} has no name on this system, which Postgres needs: add it to "
            "/etc/passwd, or give a database of your own with --database-url"
        ) from error
