"""Reads a few lines of source files as a rank's user would, in a process of its own.

`sources` runs this file and nothing imports it: a file on a dead network mount would hold up
whoever reads it, and a root agent must not read for a job what the job's user may not. Paths come
from the rank's memory, so they are the job's to choose. As root it therefore enters the rank's own
root folder and becomes its user before it opens anything; as anybody else it reads only for ranks
of the same user. Standard library only, and one question by standard input: pid, start_ticks,
around, places as [file, line].
"""

import json
import os
import stat
import sys

MAX_FILE = 4 * 1024 * 1024
MAX_LINE = 240
# Capabilities that read any file: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_READS_ALL = 0b110


def main() -> int:
    asked = json.load(sys.stdin)
    folder = os.open(f"/proc/{int(asked['pid'])}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if _start_ticks(folder) != asked["start_ticks"]:
        return 1
    prefix = _become(folder, _status(folder))
    around = int(asked["around"])
    found = []
    for file, line in asked["places"]:
        lines = _lines(prefix + file)
        if 0 < line <= len(lines):
            first = max(1, line - around)
            shown = [_plain(text) for text in lines[first - 1 : line + around]]
            found.append({"file": file, "line": line, "first": first, "lines": shown})
    json.dump(found, sys.stdout)
    return 0


def _become(folder: int, status: dict[str, list[int]]) -> str:
    """What paths of the rank begin with, once this process may read no more than its user."""
    uid, gid = status["Uid"][3], status["Gid"][3]
    own = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)  # out of reach afterwards
    os.fchdir(folder)
    if os.geteuid() == 0:
        os.chroot("root")
        os.chdir("/")
        os.setgroups(status["Groups"])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        prefix = ""
    else:
        prefix = f"/proc/self/fd/{folder}/root"
    is_root = uid == 0 and os.geteuid() == 0
    if os.geteuid() != uid or (_capabilities(own) & _READS_ALL and not is_root):
        raise PermissionError("the rank is another user's")
    return prefix


def _lines(path: str) -> list[bytes]:
    """The lines of a regular file of no unusual size, else none."""
    try:
        if not _is_fit(os.stat(path)):  # before it is opened: opening a device can do things
            return []
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not _is_fit(os.fstat(file.fileno())):
                return []
            return file.read(MAX_FILE).split(b"\n")
    except OSError:
        return []


def _is_fit(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_size <= MAX_FILE


def _plain(line: bytes) -> str:
    text = line[: 4 * MAX_LINE].decode("utf-8", "replace").expandtabs(4).rstrip()
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)[:MAX_LINE]


def _start_ticks(folder: int) -> int:
    text = _read(os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder))
    return int(text.rpartition(")")[2].split()[19])


def _status(folder: int) -> dict[str, list[int]]:
    """Uid, Gid and Groups of a process."""
    text = _read(os.open("status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder))
    rows = (line.partition(":") for line in text.splitlines())
    wanted = ("Uid", "Gid", "Groups")
    return {name: [int(word) for word in rest.split()] for name, _, rest in rows if name in wanted}


def _capabilities(status: int) -> int:
    text = _read(status)
    return int(text.partition("CapEff:")[2].split()[0], 16)


def _read(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main())
