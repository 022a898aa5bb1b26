"""Sibling groups: those of the same mesh dimension, which make the same calls at the same places.

They are told by the description, else by the name, without its number; by size; and by having no
rank in common. Groups that nobody named are siblings where one is the other, moved by some ranks.
What they called may decide a disagreement inside a small group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from hangwatch_server.diagnose.calls import record, signature
from hangwatch_server.diagnose.calls.signature import Signature
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView

MOST = 64  # siblings that are asked
_NUMBER = re.compile(r"\d+")


def of(survey: Survey, group: GroupView) -> Iterator[GroupView]:
    """The siblings, by id so that no order of reports matters."""
    size, epoch = len(group.ranks), group.epoch
    if (size, epoch) not in survey.alike:
        survey.alike[size, epoch] = _alike(survey.snapshot.groups, size, epoch)
    stem = stem_of(group)
    members = set(group.ranks)
    for other in survey.alike[size, epoch].get(stem, ()):
        is_other = other.gid != group.gid and members.isdisjoint(other.ranks)
        if is_other and (stem or _is_moved(group, other)):
            yield other


def _alike(groups: Mapping[str, GroupView], size: int, epoch: int) -> dict[str, list[GroupView]]:
    """The groups of this size and epoch, by id, under their stems."""
    found: dict[str, list[GroupView]] = {}
    fitting = (one for one in groups.values() if len(one.ranks) == size and one.epoch == epoch)
    for group in sorted(fitting, key=attrgetter("gid")):
        found.setdefault(stem_of(group), []).append(group)
    return found


def _is_moved(group: GroupView, other: GroupView) -> bool:
    """Whether all ranks differ by the same number: of groups without names, such are one row."""
    distance = other.ranks[0] - group.ranks[0]
    return all(
        theirs - ours == distance for ours, theirs in zip(group.ranks, other.ranks, strict=True)
    )


def stem_of(group: GroupView) -> str:
    """The name without its numbers; "" for names that torch made up."""
    name = group.description if group.description not in ("", "undefined") else group.name
    return _NUMBER.sub("", name)


def family_of(group: GroupView) -> str:
    """The name that a group shares with its siblings, as people read it: `dp` for `dp-3`."""
    name = group.description if group.description not in ("", "undefined") else group.name
    return _NUMBER.sub("", name).strip(" _-.:/")


def choice(
    survey: Survey, group: GroupView, seq: int, sides: Iterable[Signature]
) -> Signature | None:
    """The one of `sides` that most siblings called at this place; None when they do not say.

    A sibling whose own members differ has no say.
    """
    wanted = set(sides)
    votes: Counter[Signature] = Counter()
    for asked, sibling in enumerate(of(survey, group)):
        if asked == MOST:
            break
        called = {signature.of(entry) for entry in record.at(survey, sibling.gid, seq).values()}
        if len(called) == 1 and called <= wanted:
            votes[called.pop()] += 1
    ranked = votes.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]
