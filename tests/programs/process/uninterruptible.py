"""A sleep that no signal but SIGKILL ends, as on a network disk that does not answer (D state).

The parent of vfork() sleeps so until its child starts a program or ends; this child does neither.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

SOURCE = """
#include <unistd.h>
void wait_for_child(void) {
    if (vfork() == 0) {
        for (;;) sleep(3600);
    }
}
"""


def library() -> ctypes.CDLL:
    """Compile before the sleep is wanted: a compiler at work is a child like any other."""
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "sleep.c", Path(folder) / "sleep.so"
        source.write_text(SOURCE)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
        return ctypes.CDLL(str(built))
