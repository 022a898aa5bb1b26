"""The mesh of a job: recognised from names and structure, and left alone where there is none."""

from __future__ import annotations

import pytest

from hangwatch_server.diagnose import mesh
from hangwatch_server.model import Axis, GroupView
from hangwatch_server.simulate import meshes


def group(ranks: tuple[int, ...], name: str = "", description: str = "") -> GroupView:
    gid = f"{name}-{description}-{ranks}"
    return GroupView(gid=gid, name=name, description=description, backend="gloo", ranks=ranks)


def views(made: meshes.Mesh) -> list[GroupView]:
    return [group(one.ranks, one.name, one.description) for one in made.groups.values()]


def named(axes: tuple[Axis, ...]) -> list[tuple[str, int, int]]:
    return [(axis.name, axis.size, axis.stride) for axis in axes]


def test_dimensions_come_innermost_first_with_the_frameworks_short_names() -> None:
    axes = mesh.axes(views(meshes.build(8, 4, 2)), 64)

    assert named(axes) == [("tp", 8, 1), ("dp", 4, 8), ("pp", 2, 32)]
    assert [axis.groups for axis in axes] == [8, 16, 32]


def test_nameless_groups_are_told_apart_by_size_and_spacing() -> None:
    axes = mesh.axes(views(meshes.build(4, 4, 2, are_described=False)), 32)

    assert named(axes) == [("", 4, 1), ("", 4, 4), ("", 2, 16)]


def test_a_dimension_without_groups_follows_from_the_others() -> None:
    only_tensor = [group(tuple(range(n, n + 4)), f"tp-{n}") for n in range(0, 16, 4)]

    assert named(mesh.axes(only_tensor, 16)) == [("tp", 4, 1), ("", 4, 4)]


def test_a_gap_between_two_dimensions_is_filled() -> None:
    made = meshes.build(2, 4, 2)
    apart = [one for one in views(made) if one.description != "dp"]

    assert named(mesh.axes(apart, 16)) == [("tp", 2, 1), ("", 4, 2), ("pp", 2, 8)]


@pytest.mark.parametrize(
    ("family", "short"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
        ("mesh_dp", "dp"),
        ("data_parallel_group", "dp"),
        ("pipeline", "pp"),
        ("EXPERT_DATA_PARALLEL_GROUP", "ep dp"),
        ("context_parallel", "cp"),
        ("sub", "sub"),
        ("", ""),
    ],
)
def test_the_words_of_frameworks_have_short_names(family: str, short: str) -> None:
    assert mesh.short_name(family) == short


def test_groups_over_two_dimensions_at_once_do_not_disturb_the_mesh() -> None:
    made = views(meshes.build(2, 4, 2))
    model_parallel = [group((n, n + 1, n + 8, n + 9), f"mp-{n}") for n in range(0, 8, 2)]

    assert named(mesh.axes([*model_parallel, *made], 16)) == [
        ("tp", 2, 1),
        ("dp", 4, 2),
        ("pp", 2, 8),
    ]


def test_pairs_of_neighbours_in_a_ring_are_no_dimension() -> None:
    ring = [group((n, (n + 1) % 8) if n < 7 else (0, 7), f"pair-{n}") for n in range(8)]

    assert mesh.axes(ring, 8) == ()


def test_a_family_that_leaves_ranks_out_is_no_dimension() -> None:
    assert mesh.axes([group((0, 1), "tp-0"), group((2, 3), "tp-1")], 6) == ()


def test_all_ranks_in_one_group_are_no_mesh() -> None:
    assert mesh.axes([group(tuple(range(8)), "0", "default_pg")], 8) == ()


def test_of_two_names_for_the_same_groups_the_known_one_is_shown() -> None:
    pairs = [(n, n + 1) for n in range(0, 8, 2)]
    odd = [group(pair, f"abc-{n}") for n, pair in enumerate(pairs)]
    known = [group(pair, f"tensor-{n}") for n, pair in enumerate(pairs)]

    assert named(mesh.axes(odd, 8))[0] == ("abc", 2, 1)
    assert named(mesh.axes([*odd, *known], 8))[0] == ("tp", 2, 1)


def test_two_dimensions_of_one_short_name_keep_their_own() -> None:
    shard = [group((n, n + 1), f"dp_shard {n}") for n in range(0, 8, 2)]
    replicate = [group(tuple(range(n, 8, 2)), f"data_replicate {n}") for n in range(2)]

    names = [axis.name for axis in mesh.axes([*shard, *replicate], 8)]

    assert len(set(names)) == 2
