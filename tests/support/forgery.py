"""Records that another user writes into an agent's run dir, to claim what is not theirs."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hangwatch_agent import records
from hangwatch_agent.probe import record

NOBODY = 65534


def forge(scratch: Path, run_dir: Path, pid: int, **changes: object) -> Path:
    """A copy of a real rank's record that names process `pid`, written by another user.

    It claims the same launch; only the name, which any user may give any job, is another.
    """
    payload = records.read(records.scan(run_dir)[0]).payload
    assert payload is not None
    writer = record.Writer(str(scratch), pid, record.start_ticks(pid))
    environment = {**payload.environment, "HANGWATCH_JOB": "impostor"}
    forged = msgspec.structs.replace(payload, pid=pid, environment=environment, **changes)
    writer.write(msgspec.json.encode(forged))
    source = Path(writer.path)
    source.chmod(0o644)
    user = NOBODY if os.geteuid() == 0 else None
    with shared(run_dir):
        subprocess.run(["cp", source, run_dir / source.name], check=True, user=user, group=user)
    source.unlink()
    return run_dir / source.name


@contextlib.contextmanager
def shared(run_dir: Path) -> Iterator[None]:
    """Open to all users like root's default run dir, for a moment."""
    run_dir.chmod(0o1777)
    try:
        yield
    finally:
        run_dir.chmod(0o700)
