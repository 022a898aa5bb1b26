"""How detection's sentences name what a finding names."""

from __future__ import annotations


def group(name: str) -> str:
    """A `GroupRef`'s name within a sentence: "the default group", "dp-1", "group 3"."""
    return "the default group" if name == "default_pg" else name
