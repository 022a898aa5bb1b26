"""Whether the files of a run dir are safe from other users. Asked by probe, agent and `run` alike.

Its default outside of a login session has a name in /tmp that anybody can guess and make first.
"""

from __future__ import annotations

import os
import stat

UID_MAP = "/proc/self/uid_map"
MAX_UIDS = 2**32 - 1  # that the first user namespace knows


def problem(path: str, *, of_any_owner: bool = False) -> str:
    """Who could put files in place of ours in this folder, in words; "" if only root could.

    `of_any_owner`: for a root agent, which may be pointed at the folder of one user and believes
    only that user's own records in it. Raises OSError where there is no such folder.
    """
    facts = os.stat(path)
    for owner in (os.lstat(path).st_uid, facts.st_uid):  # of a link, and of what it leads to
        is_ours = of_any_owner or owner in (0, os.geteuid())
        if not is_ours and not _is_root_of_the_host(path, owner):
            return f"belongs to uid {owner}, who could replace what is in it"
    if not stat.S_ISDIR(facts.st_mode):
        return "is not a folder"
    if facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
        return "lets every user remove others' files (chmod +t)"
    return ""


def _is_root_of_the_host(path: str, owner: int) -> bool:
    """Whether a container sees the host's root there: an owner without a number in it.

    Other users of the host have none either, so not where one of them could have made the folder.
    """
    try:
        with open("/proc/sys/kernel/overflowuid") as file:
            nobody = int(file.read())
        with open(UID_MAP) as file:
            known = sum(int(line.split()[2]) for line in file)
        above = os.stat(os.path.dirname(os.path.abspath(path))).st_mode
    except (OSError, ValueError, IndexError):
        return False
    return owner == nobody and known < MAX_UIDS and not above & stat.S_IWOTH
