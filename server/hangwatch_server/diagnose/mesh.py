"""Recognises the mesh that a job's process groups span: tensor, data, pipeline parallel.

By names and descriptions where the framework gives them, and always by structure: the groups of one
dimension are disjoint, equally large, evenly spaced and cover all ranks. What fits no mesh (groups
over two dimensions at once, rings of neighbours) is left out: it is in the table of groups all the
same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hangwatch_server.diagnose.calls import siblings
from hangwatch_server.model import Axis, GroupView

# Of hostile or odd jobs: no framework makes more dimensions, and each costs a comparison with all.
MOST_AXES = 24
_LONGEST_NAME = 24
_WORDS = re.compile(r"[a-z]+")
_FILLERS = frozenset({"mesh", "group", "groups", "parallel", "model", "pg", "default", "gloo"})
_SHORT = {
    "tp": "tp", "tensor": "tp",
    "pp": "pp", "pipe": "pp", "pipeline": "pp", "stage": "pp",
    "dp": "dp", "ddp": "dp", "data": "dp", "fsdp": "dp",
    "cp": "cp", "context": "cp",
    "ep": "ep", "expert": "ep", "moe": "ep",
    "sp": "sp", "sequence": "sp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Groups that could be one dimension of a mesh."""

    family: str
    size: int
    stride: int
    groups: int

    @property
    def weight(self) -> tuple[bool, bool]:
        """Of two families over the same ranks the better known name is the one to show."""
        return short_name(self.family) in _SHORT.values(), bool(self.family)

    @property
    def span(self) -> int:
        return self.size * self.stride


def axes(groups: Iterable[GroupView], world_size: int) -> tuple[Axis, ...]:
    """The dimensions, innermost first, so that rank = sum of place times stride; () for no mesh.

    1. Groups of one name but for its number, and of one size, are a family; nameless ones are
       told by their spacing as well.
    2. A family is a dimension if its groups tile all ranks in blocks of size times stride.
    3. The longest chain in which each stride is a multiple of the span before it is the mesh.
    4. Where the chain leaves a gap, a dimension without groups fills it.
    """
    found: dict[tuple[int, int], _Candidate] = {}
    for (family, _, _), members in _families(groups, world_size).items():
        candidate = _candidate(family, members, world_size)
        if candidate is None:
            continue
        place = candidate.size, candidate.stride
        if place not in found or candidate.weight > found[place].weight:
            found[place] = candidate
    chain = _longest_chain(sorted(found.values(), key=lambda one: one.span)[:MOST_AXES])
    return _filled(chain, world_size) if chain else ()


def short_name(family: str) -> str:
    """`tp` for "TENSOR_MODEL_PARALLEL_GROUP", `dp` for "mesh_dp"; else the words that tell."""
    words = [word for word in _WORDS.findall(family.lower()) if word not in _FILLERS]
    known = list(dict.fromkeys(_SHORT[word] for word in words if word in _SHORT))
    if len(known) == 1:
        return known[0]
    return " ".join(known or words)[:_LONGEST_NAME]


def _families(
    groups: Iterable[GroupView], world_size: int
) -> dict[tuple[str, int, int], dict[tuple[int, ...], None]]:
    """The distinct rank sets of each family, by stem, size and, for nameless ones, spacing."""
    found: dict[tuple[str, int, int], dict[tuple[int, ...], None]] = {}
    for group in groups:
        size = len(group.ranks)
        if not 1 < size < world_size:
            continue
        stem = siblings.family_of(group)
        spacing = 0 if stem else group.ranks[1] - group.ranks[0]
        found.setdefault((stem, size, spacing), {})[group.ranks] = None
    return found


def _candidate(
    family: str, members: dict[tuple[int, ...], None], world_size: int
) -> _Candidate | None:
    first = next(iter(members))
    size, stride = len(first), first[1] - first[0]
    if len(members) * size != world_size:
        return None
    for ranks in members:
        start = ranks[0]
        if (start // stride) % size or ranks != tuple(range(start, start + size * stride, stride)):
            return None
    # Distinct, aligned and as many as the ranks hold: they tile, unless they reach beyond the job.
    if max(ranks[-1] for ranks in members) >= world_size:
        return None
    return _Candidate(family, size, stride, len(members))


def _longest_chain(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Of dimensions in order of span, each stride a multiple of the span before it.

    Better known names count before mere length.
    """
    best: list[list[_Candidate]] = []
    for candidate in candidates:
        before = [chain for chain in best if candidate.stride % chain[-1].span == 0]
        best.append([*max(before, key=_worth, default=[]), candidate])
    return max(best, key=_worth, default=[])


def _worth(chain: Sequence[_Candidate]) -> tuple[int, int]:
    return sum(candidate.weight[0] for candidate in chain), len(chain)


def _filled(chain: Sequence[_Candidate], world_size: int) -> tuple[Axis, ...]:
    names = [short_name(candidate.family) for candidate in chain]
    made: list[Axis] = []
    span = 1
    for candidate, name in zip(chain, names, strict=True):
        if candidate.stride > span:
            made.append(Axis(name="", size=candidate.stride // span, stride=span, groups=0))
        is_shared = names.count(name) > 1
        made.append(
            Axis(
                name=candidate.family[:_LONGEST_NAME] if is_shared else name,
                size=candidate.size,
                stride=candidate.stride,
                groups=candidate.groups,
                family=candidate.family,
            )
        )
        span = candidate.span
    if world_size > span:
        made.append(Axis(name="", size=world_size // span, stride=span, groups=0))
    return tuple(made)
