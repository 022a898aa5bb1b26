"""Paths of a job mean what they mean to the job, and never lead out of its root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangwatch_agent import inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A job's root with a file, beside the host's secret."""
    found = tmp_path / "root"
    (found / "data" / "deep").mkdir(parents=True)
    (found / "data" / "deep" / "file").write_text("of the job")
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "file").write_text("of the host")
    return found


def read(root: Path, path: str) -> str:
    with inside.opened(root, path, os.O_RDONLY) as handle:
        return os.read(handle, 100).decode()


def test_plain_path_is_read_below_the_root(root: Path) -> None:
    assert read(root, "/data//deep/./file") == "of the job"


def test_absolute_link_means_a_place_below_the_root(root: Path) -> None:
    (root / "tmp").symlink_to("/data/deep")

    assert read(root, "/tmp/file") == "of the job"


def test_relative_link_is_followed_from_where_it_stands(root: Path) -> None:
    (root / "data" / "here").symlink_to("../data/deep")

    assert read(root, "/data/here/file") == "of the job"


@pytest.mark.parametrize("target", ["{host}", "../host", "../../../../..{host}"])
def test_link_to_a_folder_of_the_host_does_not_lead_there(root: Path, target: str) -> None:
    (root / "out").symlink_to(target.format(host=root.parent / "host"))

    with pytest.raises(FileNotFoundError):
        read(root, "/out/file")


def test_link_of_the_kernels_own_does_not_lead_out_either(root: Path) -> None:
    (root / "proc").mkdir()
    (root / "proc" / "root").symlink_to(f"/proc/{os.getpid()}/root")

    with pytest.raises(FileNotFoundError):
        read(root, f"/proc/root{root.parent}/host/file")
    with pytest.raises(FileNotFoundError):
        read(Path("/"), f"/proc/self/task/{os.getpid()}/cwd/../../../../../no-such-folder/x")


def test_link_in_the_last_place_is_not_followed(root: Path) -> None:
    (root / "file").symlink_to("data/deep/file")

    with pytest.raises(OSError, match="symbolic links"):
        read(root, "/file")


def test_links_in_a_circle_end(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")

    with pytest.raises(OSError, match="symbolic links"):
        read(root, "/a/file")


def test_file_on_the_way_is_no_folder(root: Path) -> None:
    with pytest.raises(NotADirectoryError):
        read(root, "/data/deep/file/x")


def test_nothing_stays_open(root: Path) -> None:
    (root / "tmp").symlink_to("/data/deep")
    before = len(os.listdir("/proc/self/fd"))

    read(root, "/tmp/file")
    for path in ("/tmp/none", "/none/x", "/data/deep/file/x", "/" + "data/" * 100):
        with pytest.raises(OSError):  # noqa: PT011 - each for a reason of its own
            read(root, path)

    assert len(os.listdir("/proc/self/fd")) == before
