"""Loaded by every Python that `hangwatch run` starts: prepares the probe, chains the next one.

Self-contained: the probe is loaded by file location from the folder above, so the job's environment
need not have Hangwatch. All it does here is to install import hooks; HANGWATCH_DISABLE=1 switches
it off.
"""

from __future__ import annotations

import contextlib
import os
import sys


def _load() -> None:
    import importlib
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.dirname(here)
    name = "_hangwatch_probe"
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None or name in sys.modules:
        return
    probe = importlib.util.module_from_spec(spec)
    sys.modules[name] = probe
    spec.loader.exec_module(probe)
    probe.start()
    hook = importlib.import_module(f"{name}.hook")
    sys.meta_path.append(hook.FallbackFinder(os.path.dirname(os.path.dirname(folder))))


def _chain() -> None:
    """Run the sitecustomize that this one hides, as if it had been found first."""
    import importlib.machinery
    import importlib.util

    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    others = [path for path in sys.path if os.path.realpath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


# The probe asks the same; asked here too, so that a disabled one is not even imported.
if os.environ.get("HANGWATCH_DISABLE", "").strip().lower() not in ("1", "true", "yes", "on"):
    # A broken probe must not keep any Python from starting.
    with contextlib.suppress(Exception):
        _load()

# Not suppressed: the site module reports the errors of the user's own sitecustomize.
_chain()
