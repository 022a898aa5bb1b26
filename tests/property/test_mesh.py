"""Whatever mesh a job has, it is recognised; whatever its groups are, nothing false is claimed."""

from __future__ import annotations

from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from hangwatch_server import diagnose
from hangwatch_server.model import GroupView
from hangwatch_server.simulate import meshes

WIDTHS = st.integers(1, 6)


def views(made: meshes.Mesh) -> list[GroupView]:
    return [
        GroupView(
            gid=one.gid,
            name=one.name,
            description=one.description,
            backend="gloo",
            ranks=one.ranks,
        )
        for one in made.groups.values()
    ]


@given(WIDTHS, WIDTHS, WIDTHS, st.booleans(), st.randoms(use_true_random=False))
def test_the_mesh_that_was_built_is_found_in_any_order(
    tensor: int, data: int, pipe: int, are_described: bool, random: object
) -> None:
    made = meshes.build(tensor, data, pipe, are_described=are_described)
    groups = views(made)
    random.shuffle(groups)  # type: ignore[attr-defined]
    built = {"tp": (tensor, 1), "dp": (data, tensor), "pp": (pipe, tensor * data)}
    expected = [
        (name if are_described else "", size, stride)
        for name, (size, stride) in built.items()
        if size > 1
    ]

    axes = diagnose.axes(groups, made.size)

    is_mesh = len(expected) > 1
    assert [(axis.name, axis.size, axis.stride) for axis in axes] == (expected if is_mesh else [])


GROUPS = st.lists(
    st.builds(
        lambda ranks, name: GroupView(
            gid=f"{name}{ranks}", name=name, description="", backend="gloo", ranks=ranks
        ),
        st.sets(st.integers(0, 23), min_size=1, max_size=12).map(
            lambda ranks: tuple(sorted(ranks))
        ),
        st.sampled_from(["dp-0", "dp-1", "tp", "7", ""]),
    ),
    max_size=12,
)


@settings(max_examples=300)
@given(GROUPS, st.integers(1, 24))
def test_axes_always_number_every_rank_once(groups: list[GroupView], world_size: int) -> None:
    axes = diagnose.axes(groups, world_size)

    if axes:
        assert prod(axis.size for axis in axes) == world_size
        strides = [prod(axis.size for axis in axes[:at]) for at in range(len(axes))]
        assert [axis.stride for axis in axes] == strides
