"""Reads the text that NCCL tells a person since 2.24: only where members of a communicator differ.

Of ranks that agree, NCCL lists the minority by name and counts the majority; whoever is left over
belongs to the one value that is not listed. A communicator without a section is in order, and the
text says nothing of its members. Lines that are not known are passed over: the text is no contract.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hangwatch_agent import wire
from hangwatch_agent.errors import RasError
from hangwatch_agent.ras.status import Communicator, Member, Status, op_name
from hangwatch_agent.wire import RasState

MAX_LINES = 400_000
MAX_LINE = 2000
MAX_TOPICS = wire.MAX_RAS_OPS + 2  # of one communicator: its ops, status, error
_VERSION = re.compile(r"NCCL version ([0-9][\w.+-]{0,30})")
_ROW = re.compile(
    r" *(\d{1,9}) +\d{1,9} +\d{1,9} +[\d-]{1,20} +(\d{1,9}) +\d{1,9} +[A-Z]+ +[A-Z,]+"
)
_SECTION = re.compile(r"#(\d{1,9})-\d{1,9} \(([0-9a-f]{1,16})\) ([A-Z]+)")
_OPS = re.compile(r" *Communicator ranks have different (?:(\w{1,32}) )?operation counts")
_LAUNCHED = re.compile(r" *(\d{1,9}) ranks have launched up to operation (\d{1,18})")
_NONE = re.compile(r" *(\d{1,9}) ranks have not launched any operations")
_STATUS = re.compile(r" *(\d{1,9}) ranks have status ([A-Z]+)")
_REPORTED = re.compile(r" *(\d{1,9}) ranks reported (.{1,60})")
_RANK = re.compile(
    r" *Rank (\d{1,9})"
    r"(?: (has launched up to operation|has not launched any operations|has status|reported)"
    r"(?: ([\w ]{1,60}?))?)?"
    r"(?: -- (?:GPU (\d{1,4})(?: \(NVML (\d{1,4})\))?"
    r" managed by process (\d{1,9}) on node (\S{1,64})"
    r"|\[process information not found\]))?"
)
_NUMBERS = re.compile(r" *The (missing|unknown) ranks?: ([\d, ]{1,1500})")
_TIMEOUTS = re.compile(r" *Encountered (\d{1,6}) communication timeout")
_STATES = {
    "NOCOMM": RasState.LEFT,
    "UNKNOWN": RasState.LEFT,  # 2.24 and 2.25 call it so
    "INIT": RasState.INIT,
    "RUNNING": RasState.RUNNING,
    "FINALIZE": RasState.FINALIZE,
    "ABORT": RasState.ABORT,
}


@dataclass(slots=True)
class _Class:
    """Ranks that share one value; not all of them need be listed."""

    value: str
    number: int
    listed: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Sections:
    """What the text says of one communicator."""

    hash: str
    size: int
    members: dict[int, Member] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)  # no data from these
    classes: dict[str, list[_Class]] = field(default_factory=dict)  # topic -> classes


def parse(data: bytes) -> Status:
    """Raise RasError for anything that is no whole answer."""
    text = data.decode("utf-8", "replace")
    version = _VERSION.search(text[:4096])
    if version is None or "\nWarnings\n" not in text:
        raise RasError("the answer of NCCL RAS ended early")
    lines = text.splitlines()[:MAX_LINES]
    timeouts = [int(found[1]) for row in lines if (found := _TIMEOUTS.match(row[:MAX_LINE]))]
    communicators, omitted = _communicators(_sections(lines))
    return Status(
        version=version[1],
        communicators=communicators,
        omitted=omitted,
        is_text=True,
        timeouts=sum(timeouts),
    )


def _sections(lines: list[str]) -> list[_Sections]:
    sizes: dict[str, int] = {}
    found: dict[str, _Sections] = {}
    for heading, rows in _blocks(lines, sizes):
        group, hash, _ = heading
        item = found.setdefault(hash, _Sections(hash, sizes.get(group, 0)))
        _read(item, rows)
    return list(found.values())


def _blocks(
    lines: list[str], sizes: dict[str, int]
) -> Iterator[tuple[tuple[str, str, str], list[str]]]:
    """Each section with its lines; fills `sizes` from the table that comes before them."""
    heading: tuple[str, str, str] | None = None
    rows: list[str] = []
    for line in lines:
        row = line[:MAX_LINE]
        section = _SECTION.match(row)
        if section is not None:
            if heading is not None:
                yield heading, rows
            heading, rows = (section[1], section[2], section[3]), []
        elif row and not row.startswith(" ") and heading is not None:
            yield heading, rows  # a title of the whole job's
            heading, rows = None, []
        elif heading is not None:
            rows.append(row)
        elif (size := _ROW.fullmatch(row)) is not None:
            sizes[size[1]] = int(size[2])
    if heading is not None:
        yield heading, rows


def _read(item: _Sections, rows: list[str]) -> None:
    topic = "lost"
    current: _Class | None = None
    for row in rows:
        if (different := _OPS.match(row)) is not None:
            topic, current = f"op {different[1] or 'collective'}", None
        elif "have different status" in row:
            topic, current = "status", None
        elif "nchronous error" in row or "nitialization error" in row:
            topic, current = "error", None
        elif (numbers := _NUMBERS.match(row)) is not None:
            _numbers(item, numbers[1], numbers[2])
        elif (shared := _shared(row)) is not None:
            current = shared
            _add(item, topic, shared)
        elif (rank := _RANK.fullmatch(row)) is not None:
            _rank(item, topic, current, rank)


def _shared(row: str) -> _Class | None:
    """The head of a class of several ranks."""
    for pattern in (_LAUNCHED, _STATUS, _REPORTED):
        found = pattern.fullmatch(row)
        if found is not None:
            return _Class(found[2], int(found[1]))
    none = _NONE.fullmatch(row)
    return None if none is None else _Class("0", int(none[1]))


def _rank(item: _Sections, topic: str, current: _Class | None, found: re.Match[str]) -> None:
    number = int(found[1])
    if not number < max(item.size, 1) or len(item.members) >= wire.MAX_RAS_MEMBERS:
        return
    member = item.members.setdefault(number, Member(rank=number))
    if found[6] is not None:
        member.pid, member.host = int(found[6]), found[7]
        member.gpu = int(found[5] or found[4])
    if topic == "lost":
        item.lost.add(number)
    elif found[2] is not None:
        value = "0" if "not launched" in found[2] else (found[3] or "")
        _add(item, topic, _Class(value, 1, [number]))
    elif current is not None:
        current.listed.append(number)


def _numbers(item: _Sections, what: str, text: str) -> None:
    """Ranks that are only numbered: no data came from the missing, the unknown have left."""
    for word in text.replace(",", " ").split():
        number = int(word[:9])
        if number < item.size:
            member = item.members.setdefault(number, Member(rank=number))
            if what == "missing":
                item.lost.add(number)
            else:
                member.state = RasState.LEFT


def _add(item: _Sections, topic: str, shared: _Class) -> None:
    if topic in item.classes or len(item.classes) < MAX_TOPICS:
        item.classes.setdefault(topic, []).append(shared)


def _communicators(sections: list[_Sections]) -> tuple[list[Communicator], int]:
    """Those whose members are within the limit of all together, and how many were left out.

    Three lines of text can speak of 65,536 ranks, so what would be made is counted first.
    """
    found: list[Communicator] = []
    left, omitted = wire.MAX_RAS_MEMBERS, 0
    for item in sections:
        size = max(_everybody(item), len(item.members))
        if size > left:
            omitted += size
            continue
        left -= size
        found.append(_communicator(item))
    return found, omitted


def _everybody(item: _Sections) -> int:
    """How many ranks are spoken of without being listed."""
    return item.size if any(topic.startswith("op ") for topic in item.classes) else 0


def _communicator(item: _Sections) -> Communicator:
    for number in range(_everybody(item)):
        item.members.setdefault(number, Member(rank=number))
    for number in item.lost:
        item.members[number].state = RasState.UNRESPONSIVE
    for topic, classes in item.classes.items():
        for number, value in _values(item, classes).items():
            _apply(item.members[number], topic, value)
    ordered = [item.members[number] for number in sorted(item.members)]
    return Communicator(hash=item.hash, size=item.size, members=ordered)


def _values(item: _Sections, classes: list[_Class]) -> dict[int, str]:
    """Value per rank; those nobody lists have the value of the one class that is not listed."""
    found = {number: shared.value for shared in classes for number in shared.listed}
    hidden = [shared for shared in classes if len(shared.listed) < shared.number]
    rest = [
        number
        for number, member in item.members.items()
        if number not in found and number not in item.lost and member.state is not RasState.LEFT
    ]
    if len(hidden) == 1 and hidden[0].number - len(hidden[0].listed) == len(rest):
        found.update(dict.fromkeys(rest, hidden[0].value))
    return found


def _apply(member: Member, topic: str, value: str) -> None:
    if topic == "status":
        member.state = _STATES.get(value, member.state)
    elif topic == "error":
        member.error = value
    elif topic.startswith("op ") and value.isdecimal():
        member.counts[op_name(topic.removeprefix("op "))] = int(value)
