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


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A folder where everybody can make some, as in /tmp."""
    above = tmp_path / "tmp"
    above.mkdir()
    above.chmod(0o1777)
    found = above / "hangwatch-1000"
    found.mkdir()
    return found


def test_own_folder_is_used_also_where_a_group_shares_it(run_dir: Path) -> None:
    run_dir.chmod(0o2770)

    assert folder.problem(str(run_dir)) == ""


def test_folder_that_another_user_made_first_is_refused(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_away(run_dir, monkeypatch)

    assert "who could replace what is in it" in folder.problem(str(run_dir))


def test_folder_of_an_agents_user_is_used_where_not_everybody_could_have_made_it(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_away(run_dir, monkeypatch)
    run_dir.chmod(0o1777)
    run_dir.parent.chmod(0o755)

    assert folder.problem(str(run_dir)) == ""


def test_link_that_another_user_made_to_a_folder_of_ours_is_refused(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = run_dir.parent / "link"
    link.symlink_to(tmp_path)
    given_away(link, monkeypatch)

    assert "belongs to uid" in folder.problem(str(link))


def test_folder_where_all_may_remove_files_of_all_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    assert "chmod +t" in folder.problem(str(tmp_path))


def test_folder_that_roots_agent_shares_with_all_users_is_used(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a folder of root's")
    run_dir.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    assert folder.problem(str(run_dir)) == ""


def test_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert folder.problem(str(tmp_path / "file")) == "is not a folder"
