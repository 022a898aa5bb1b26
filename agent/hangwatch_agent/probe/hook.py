"""Import hooks: run the probe after torch.distributed is imported; serve `import hangwatch`.

Installing them costs a process nothing until it imports torch.distributed.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Sequence

TARGET = "torch.distributed.distributed_c10d"


def after_import(action: Callable[[], None]) -> None:
    """Run `action` once TARGET is imported, at once if it is already."""
    if getattr(sys.modules.get(TARGET), "init_process_group", None) is not None:
        action()
        return
    sys.meta_path.insert(0, _Finder(action))


class _Finder(importlib.abc.MetaPathFinder):
    """Answers for TARGET only, with the real spec whose loader also runs the action."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._is_looking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != TARGET or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._done)
        return spec

    def _done(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._action()


class _Loader(importlib.abc.Loader):
    """The real loader, with one more step after the module has run."""

    def __init__(self, real: Any, done: Callable[[], None]) -> None:
        self._real = real
        self._done = done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._real.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__loader__ = self._real
        self._real.exec_module(module)
        self._done()


class FallbackFinder(importlib.abc.MetaPathFinder):
    """Last in line: finds the `hangwatch` package beside the probe where none is installed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "hangwatch":
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, [self._folder])
