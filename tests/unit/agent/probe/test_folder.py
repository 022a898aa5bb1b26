"""Whose run dir is used, and whose is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangwatch_agent.probe import folder

STRANGER = 1001


def given_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `path` another user's: only root can give files away, so others become another."""
    if os.getuid() == 0:
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def test_own_folder_is_used_also_where_a_group_shares_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)

    assert folder.problem(str(tmp_path)) == ""


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_away(tmp_path, monkeypatch)

    assert "who could replace what is in it" in folder.problem(str(tmp_path))
    assert folder.problem(str(tmp_path), of_any_owner=True) == ""


def test_link_that_another_user_made_to_a_folder_of_ours_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    given_away(link, monkeypatch)

    assert "belongs to uid" in folder.problem(str(link))


def test_folder_where_all_may_remove_files_of_all_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    assert "chmod +t" in folder.problem(str(tmp_path))


def test_folder_that_roots_agent_shares_with_all_users_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a folder of root's")
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    assert folder.problem(str(tmp_path)) == ""


def test_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert folder.problem(str(tmp_path / "file")) == "is not a folder"


@pytest.mark.parametrize(
    ("known", "above", "is_used"),
    [
        ("1000 1000 1", 0o755, True),
        ("1000 1000 1", 0o1777, False),
        ("0 0 4294967295", 0o755, False),
    ],
)
def test_root_of_the_host_is_known_in_a_container_where_nobody_else_could_have_made_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str, above: int, is_used: bool
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    shared, told = tmp_path / "hangwatch", tmp_path / "proc"
    shared.mkdir()
    tmp_path.chmod(above)
    shared.chmod(0o1777)
    os.chown(shared, 65534, 65534)
    told.write_text(known)
    monkeypatch.setattr(folder, "UID_MAP", str(told))

    assert (folder.problem(str(shared)) == "") == is_used
