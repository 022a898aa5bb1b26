"""Group identity: names, ranks in group order, epochs."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import ranges
from hangwatch_agent.probe import groups


class Owner:
    """Stands where torch's ProcessGroup does: any object that can be held weakly."""


def test_ranks_keep_group_order_and_shorten_runs() -> None:
    assert groups.ranks_text((0, 1, 2, 7)) == "0-2,7"
    assert groups.ranks_text((3, 1)) == "3,1"
    assert groups.ranks_text(()) == ""


def test_backends_are_read_with_and_without_devices() -> None:
    assert groups.backends_of("gloo") == {"gloo"}
    assert groups.backends_of("cpu:gloo,cuda:nccl") == {"gloo", "nccl"}


def test_epoch_counts_creations_of_the_same_name_and_ranks() -> None:
    table = groups.Table()
    first, other, again = Owner(), Owner(), Owner()

    made = [
        table.created(first, "1", (0, 1), is_watched=True),
        table.created(other, "1", (0, 2), is_watched=True),
        table.created(again, "1", (1, 0), is_watched=True),
    ]

    assert [group.epoch for group in made] == [1, 1, 2]


def test_dead_group_is_not_kept_alive() -> None:
    table = groups.Table()
    owner = Owner()
    table.created(owner, "1", (0, 1), is_watched=True)

    del owner

    assert len(table._groups) == 0


@given(st.lists(st.integers(0, 60), unique=True))
def test_text_of_ranks_is_read_back_in_any_order(members: list[int]) -> None:
    spec = groups.ranks_text(tuple(members))

    assert (ranges.sorted_text(spec) or "") == ranges.text(members)


def test_strided_groups_are_written_short() -> None:
    assert groups.ranks_text(tuple(range(3, 16384, 8))) == "3-16379:8"
    assert groups.ranks_text((0, 2, 4, 5, 6, 9, 1)) == "0-4:2,5-6,9,1"


def test_group_of_two_backends_is_read_as_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `init_process_group()` makes it where there are GPUs: each side counts for itself."""
    known = groups.Group("0", (0, 1), 1, is_watched=True)
    known.backend, known.description = "cpu:gloo,cuda:nccl", "default_pg"
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(device=str))  # type: ignore[arg-type]
    torchs = SimpleNamespace(_get_backend=lambda device: f"backend of {device}")

    first = groups._sides(torchs, known)
    again = groups._sides(torchs, known)

    assert [(one.name, one.is_nccl, one.is_gloo) for _, one in first] == [
        ("0", True, False),
        ("0/gloo", False, True),
    ]
    assert [str(source) for source, _ in first] == ["backend of cuda", "backend of cpu"]
    assert first[1][1].recorded_as == "0"
    assert again[1][1] is first[1][1]


def test_group_whose_backends_cannot_be_asked_is_read_as_one() -> None:
    known = groups.Group("0", (0, 1), 1, is_watched=True)
    known.backend = "cpu:gloo,cuda:nccl"

    assert groups._sides(SimpleNamespace(), known)[0][1] is known
    assert not known.is_nccl
