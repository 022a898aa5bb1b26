"""Importing this module starts the probe: the one line for jobs without `hangwatch run`."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path

# The injected sitecustomize loads it under this name too: one probe per process, first come.
NAME = "_hangwatch_probe"
PROBE = Path(__file__).resolve().parent.parent / "hangwatch_agent" / "probe" / "__init__.py"


def _start() -> None:
    probe = sys.modules.get(NAME)
    if probe is None:
        spec = importlib.util.spec_from_file_location(
            NAME, PROBE, submodule_search_locations=[str(PROBE.parent)]
        )
        if spec is None or spec.loader is None:
            return
        probe = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = probe
        spec.loader.exec_module(probe)
    probe.start()


# An import line must never break the job that it is meant to watch.
with contextlib.suppress(Exception):
    _start()
