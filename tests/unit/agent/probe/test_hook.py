"""Import hooks that touch nothing but their target."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hangwatch_agent.probe import hook


def test_action_runs_once_after_the_target_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hook_target.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(hook, "TARGET", "hook_target")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    seen: list[int] = []
    hook.after_import(lambda: seen.append(sys.modules["hook_target"].value))

    import hook_target  # type: ignore[import-not-found]

    assert seen == [1]
    assert type(hook_target.__loader__).__name__ == "SourceFileLoader"
    assert not any(isinstance(one, hook._Finder) for one in sys.meta_path)
    del sys.modules["hook_target"]


def test_fallback_finds_only_the_marks_package(tmp_path: Path) -> None:
    package = tmp_path / "hangwatch"
    package.mkdir()
    (package / "__init__.py").touch()
    finder = hook.FallbackFinder(str(tmp_path))

    found = finder.find_spec("hangwatch", None)

    assert found is not None
    assert found.origin == str(package / "__init__.py")
    assert finder.find_spec("json", None) is None
