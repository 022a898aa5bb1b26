"""`hangwatch` as a person or a scheduler runs it: one command, its output and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from subprocess import CompletedProcess

TIMEOUT_S = 180


def hangwatch(*arguments: str, **environ: str) -> CompletedProcess[str]:
    """Run one command to its end; `environ` adds to the environment."""
    return subprocess.run(
        [sys.executable, "-m", "hangwatch_agent", *arguments],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def assert_refused(done: CompletedProcess[str], *words: str, code: int = 2) -> None:
    """It failed with `code`, said all `words` in few lines, and showed no traceback."""
    assert done.returncode == code, done
    for word in words:
        assert word in done.stderr, done
    assert len(done.stderr.splitlines()) <= 3, done
    assert "Traceback" not in done.stdout + done.stderr
    assert "a defect of Hangwatch" not in done.stderr
