"""The embedded Postgres as real processes: private, one per folder, and gone with its server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support import postgres as support

from hangwatch_server.db import binaries, migrate
from hangwatch_server.db.account import Account
from hangwatch_server.db.embedded import EmbeddedPostgres
from hangwatch_server.errors import DataFolderError

pytestmark = pytest.mark.integration

# A Postgres of another version than the default one: the system's, or the older one that the wheel
# carries.
OTHERS = [
    *Path("/usr/lib/postgresql").glob("*/bin"),
    binaries.find({}, None).folder.parents[1] / "pginstall" / "bin",
]

# A server in small: it starts the embedded Postgres, says so, and lives until it is killed.
SERVER = """
import signal, sys
from pathlib import Path
from hangwatch_server.db.embedded import EmbeddedPostgres
from tests.support.postgres import FAST
print(EmbeddedPostgres(Path(sys.argv[1]), settings=FAST).start(), flush=True)
signal.pause()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with support.data_folder() as folder:
        yield folder


@contextlib.contextmanager
def started(folder: Path) -> Iterator[str]:
    postgres = EmbeddedPostgres(folder, settings=support.FAST)
    try:
        yield postgres.start()
    finally:
        postgres.stop()


def kept(url: str) -> tuple[object, ...] | None:
    with psycopg.connect(support.plain(url)) as connection:
        return connection.execute("SELECT answer FROM kept").fetchone()


@contextlib.contextmanager
def server_process(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    root = Path(__file__).resolve().parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)


def postmaster(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().split()[0])


def is_gone_within(pid_fd: int, seconds: float) -> bool:
    """Wait for a process that is not our child, without asking again and again."""
    return bool(select.select([pid_fd], [], [], seconds)[0])


def test_stopped_and_started_again_it_keeps_its_data(folder: Path) -> None:
    with started(folder) as url:
        support.execute(url, "CREATE TABLE kept AS SELECT 42 AS answer")

    with started(folder) as again:
        assert kept(again) == (42,)


def test_it_listens_on_a_private_socket_only(folder: Path) -> None:
    with started(folder) as url:
        with psycopg.connect(support.plain(url)) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert (folder / "socket").stat().st_mode & 0o077 == 0
        assert (folder / "postgres").stat().st_mode & 0o077 == 0


def test_second_server_on_a_folder_is_refused_with_the_pid_of_the_first(folder: Path) -> None:
    refusal = rf"in use .* \(pid {os.getpid()}\).*--data-dir"

    with started(folder), pytest.raises(DataFolderError, match=refusal):
        EmbeddedPostgres(folder).start()


def test_killed_server_takes_its_postgres_along_and_the_next_one_finds_the_data(
    folder: Path,
) -> None:
    with server_process(folder) as (process, url):
        support.execute(url, "CREATE TABLE kept AS SELECT 42 AS answer")
        watched = os.pidfd_open(postmaster(folder))

        os.killpg(process.pid, signal.SIGKILL)

        assert is_gone_within(watched, 90)
        os.close(watched)
    with started(folder) as again:
        assert kept(again) == (42,)


def test_start_right_after_a_kill_waits_for_the_old_postgres(folder: Path) -> None:
    with server_process(folder) as (process, url):
        support.execute(url, "CREATE TABLE kept AS SELECT 42 AS answer")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)

        with started(folder) as again:
            assert kept(again) == (42,)


def test_killed_guard_takes_postgres_along(folder: Path) -> None:
    with server_process(folder):
        pid = postmaster(folder)
        watched = os.pidfd_open(pid)
        stat = Path(f"/proc/{pid}/stat").read_text()
        guard = int(stat.rpartition(")")[2].split()[1])

        os.kill(guard, signal.SIGKILL)

        assert is_gone_within(watched, 90)
        os.close(watched)


def test_pid_file_that_names_a_foreign_process_does_not_prevent_a_start(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder, settings=support.FAST)
    postgres.start()
    pid_file = folder / "postgres" / "postmaster.pid"
    text = pid_file.read_text()
    postgres.stop()
    pid_file.write_text(re.sub(r"^\d+", str(os.getppid()), text))

    with started(folder) as again:
        support.execute(again, "SELECT 1")


def test_files_of_another_version_are_refused_with_the_way_out(folder: Path) -> None:
    (folder / "postgres").mkdir()
    (folder / "postgres" / "PG_VERSION").write_text("9\n")

    with pytest.raises(DataFolderError, match=r"made by Postgres 9.*pg_dump.*--data-dir"):
        EmbeddedPostgres(folder).start()


def test_folder_that_postgres_cannot_reach_is_refused_and_keeps_its_mode(folder: Path) -> None:
    hidden = folder / "hidden"
    hidden.mkdir(mode=0o700)
    postgres = EmbeddedPostgres(hidden / "data", settings=support.FAST)

    if os.geteuid() == 0:
        with pytest.raises(DataFolderError, match=r"'nobody'.*cannot reach.*--data-dir"):
            postgres.start()
    else:  # an ordinary user reaches its own folders
        postgres.start()
        postgres.stop()

    assert hidden.stat().st_mode & 0o777 == 0o700


def test_long_path_gets_a_short_socket_that_is_removed_afterwards(folder: Path) -> None:
    folder.chmod(0o711)  # the account that Postgres runs as must be able to pass
    postgres = EmbeddedPostgres(folder / ("long-" * 20), settings=support.FAST)

    url = postgres.start()
    sockets = Path(url.partition("?host=")[2])
    was_there = sockets.is_dir()
    postgres.stop()

    assert was_there
    assert not sockets.exists()


def test_bad_setting_is_told_in_the_words_of_postgres(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder, settings={"shared_buffers": "many"})

    with pytest.raises(DataFolderError, match="shared_buffers"):
        postgres.start()
    with pytest.raises(DataFolderError, match="shared_buffers"):  # its lock was given back
        postgres.start()


def test_unreachable_binaries_are_copied_beside_the_data(folder: Path) -> None:
    stranger = Account(name="stranger", uid=54321, gid=54321, is_other=True)
    found = binaries.find({}, None)
    private = folder / "private"
    private.mkdir(mode=0o700)
    package = found.folder.parents[1]
    for tree in (package, package.with_name(package.name + ".libs")):
        shutil.copytree(tree, private / tree.name)
    folder.chmod(0o711)

    tree = private / found.folder.relative_to(package.parent)
    copy = binaries.reachable(binaries.Binaries(folder=tree, major=found.major), stranger, folder)

    for program in (copy.postgres, copy.initdb):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        assert f" {found.major}" in said.stdout
    assert stranger.can_reach(Path(copy.postgres))
    assert private.stat().st_mode & 0o777 == 0o700


def test_other_postgres_is_used_when_pg_bindir_names_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PG_BINDIR", str(OTHERS[0]))
    default = binaries.find({}, None).major
    postgres = EmbeddedPostgres(folder, settings=support.FAST)
    try:
        url = postgres.start()
        asyncio.run(migrate.upgrade(url))
        with psycopg.connect(support.plain(url)) as connection:
            assert connection.info.server_version // 10000 != default
    finally:
        postgres.stop()


def test_without_any_postgres_no_folder_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hangwatch_server.db.binaries._folders", lambda environ: iter(()))
    postgres = EmbeddedPostgres(folder / "data")

    with pytest.raises(DataFolderError, match=r"hangwatch\[embedded\].*--database-url"):
        postgres.start()

    assert not (folder / "data").exists()
