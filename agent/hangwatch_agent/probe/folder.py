"""Whether the files of a run dir are safe from other users, as probe and `hangwatch run` ask.

Its default outside of a login session has a name in /tmp that anybody can guess, and make first.
"""

from __future__ import annotations

import os
import stat


def problem(path: str) -> str:
    """How another user could put files in place of ours in this folder; "" if none could.

    A folder of somebody else is taken where not everybody could have made it: there root, or who
    chose the folder, has let its owner. So an agent may have a user of its own, and root of the
    host be a stranger in a container. Raises OSError where there is no such folder.
    """
    facts = os.stat(path)
    if not stat.S_ISDIR(facts.st_mode):
        return "is not a folder"
    above = os.stat(os.path.dirname(os.path.abspath(path)))
    if above.st_mode & stat.S_IWOTH:
        for owner in (os.lstat(path).st_uid, facts.st_uid):  # of a link, and of what it leads to
            if owner not in (0, os.geteuid()):
                return f"belongs to uid {owner}, who could replace what is in it"
    if facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
        return "lets every user remove others' files (chmod +t)"
    return ""
