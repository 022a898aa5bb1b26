"""A rank's process groups as its record tells them, in the wire's words and within its limits.

A record is the job's word. Real groups hardly ever change, so each rank's are described once and
remembered for that rank alone: nobody else's push them out. What has to be worked out anew is
rationed, so that a record whose groups are others with every beat costs its node next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_agent import ranges, wire
from hangwatch_agent.payload import GroupPayload

MAX_MEMBERS = 2_000_000  # of all groups of one rank; 20 groups of 100,000
MAX_CHARACTERS = 256 * 1024  # of all their texts; the probe's whole record holds 64 KiB
MAX_TIMEOUT_S = 365 * 86_400.0
# Steps of `ranges` that one rank may take: 50 ms when it is first seen, later 3 ms a second.
ALLOWANCE = 65_536
ALLOWANCE_PER_S = 4096
STEPS_OF_ONE = 15  # what describing a group takes beside its ranks

Key = tuple[str, int]  # name and epoch, by which a record's calls name a group
_Spec = tuple[str, int, str, str, str, float | None]


@dataclass(frozen=True)
class Described:
    """The groups that travel, each with its description; `lacks` says what does not, in words."""

    pairs: tuple[tuple[GroupPayload, wire.GroupInfo], ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def infos(self) -> tuple[wire.GroupInfo, ...]:
        return tuple(info for _, info in self.pairs)

    @property
    def gids(self) -> dict[Key, str]:
        return {(group.name, group.epoch): info.gid for group, info in self.pairs}


@dataclass(frozen=True)
class _One:
    info: wire.GroupInfo
    members: int
    characters: int


class Groups:
    """The groups of one rank, whose launch has the key `launch`."""

    def __init__(self, launch: str) -> None:
        self._launch = launch
        self._specs: list[_Spec] = []
        self._infos: list[wire.GroupInfo | None] = []
        self._known: dict[_Spec, _One | None] = {}  # None: it cannot be described
        self._has_more = False  # what the allowance did not suffice for
        self._allowance = ALLOWANCE
        self._filled_ns = 0

    def describe(self, told: Sequence[GroupPayload], now_ns: int) -> Described:
        """Each group once that can be read and is within the limits; the others are counted."""
        taken = told[: wire.MAX_GROUPS_PER_RANK]
        specs = [_spec(group) for group in taken]
        if specs != self._specs or self._has_more:
            self._fill(now_ns)
            self._infos = self._described(specs)
            self._specs = specs
        pairs = tuple(
            (group, info)
            for group, info in zip(taken, self._infos, strict=True)
            if info is not None
        )
        left_out = len(told) - len(pairs)
        lack = f"{left_out} of {len(told)} groups are left out: too many, twice, or unreadable"
        return Described(pairs, (lack,) if left_out else ())

    def _fill(self, now_ns: int) -> None:
        gained = max(0, now_ns - self._filled_ns) * ALLOWANCE_PER_S // 10**9
        self._filled_ns = now_ns
        self._allowance = min(ALLOWANCE, self._allowance + gained)

    def _described(self, specs: list[_Spec]) -> list[wire.GroupInfo | None]:
        """One description or None per spec."""
        known, self._known = self._known, {}
        self._has_more = False
        room = _Room()
        infos: list[wire.GroupInfo | None] = []
        for spec in specs:
            if spec in known:
                self._known[spec] = known[spec]
            one = self._known[spec] if spec in self._known else self._new(spec)
            infos.append(one.info if one is not None and room.takes(one) else None)
            if room.is_full:
                self._known.pop(spec, None)  # what does not travel is not kept either
                break
        return infos + [None] * (len(specs) - len(infos))

    def _new(self, spec: _Spec) -> _One | None:
        """Work out what is not known yet; not now, if that takes more than is left."""
        steps = STEPS_OF_ONE + spec[2].count(",")
        if steps > ALLOWANCE:
            return self._keep(spec, None)
        if not self._affords(steps):
            return None
        size = ranges.measured(spec[2])
        if size is None or size.highest >= wire.MAX_WORLD_SIZE or size.steps > ALLOWANCE:
            return self._keep(spec, None)
        if not self._affords(size.steps):
            return None
        return self._keep(spec, _one(self._launch, spec, size.members))

    def _keep(self, spec: _Spec, one: _One | None) -> _One | None:
        self._known[spec] = one
        return one

    def _affords(self, steps: int) -> bool:
        if steps > self._allowance:
            self._has_more = True
            return False
        self._allowance -= steps
        return True


class _Room:
    """What may travel of one rank's groups at once."""

    def __init__(self) -> None:
        self._members, self._characters = MAX_MEMBERS, MAX_CHARACTERS
        self._gids: set[str] = set()

    @property
    def is_full(self) -> bool:
        return self._members < 0 or self._characters < 0

    def takes(self, one: _One) -> bool:
        if one.info.gid in self._gids:
            return False
        self._gids.add(one.info.gid)
        self._members -= one.members
        self._characters -= one.characters
        return not self.is_full


def _spec(group: GroupPayload) -> _Spec:
    """All that a description is made of."""
    return (
        group.name[:200],
        group.epoch,
        group.ranks,
        group.description[:200],
        group.backend[:50],
        _timeout_s(group.timeout_s),
    )


def _one(launch: str, spec: _Spec, members: int) -> _One | None:
    name, epoch, listed, description, backend, timeout_s = spec
    text = ranges.sorted_text(listed)
    if not text:
        return None
    info = wire.GroupInfo(
        gid=wire.gid_of(launch, name, text, epoch),
        launch=launch,
        name=name,
        description=description,
        backend=backend,
        ranks=text,
        epoch=epoch,
        timeout_s=timeout_s,
    )
    return _One(info, members, len(name) + len(description) + len(backend) + len(text))


def _timeout_s(told_s: float | None) -> float | None:
    """A job's own number can be anything; only one that can come to pass is a timeout."""
    return told_s if told_s is not None and 0 < told_s <= MAX_TIMEOUT_S else None
