"""The verdict as the demo prints it in the terminal. Text only."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Any

WIDTH = 92


def verdict_lines(verdict: dict[str, Any], page: str) -> Iterator[str]:
    """The verdict document of the REST contract, culprits first."""
    confidence = f"(confidence {verdict['confidence']:.0%})"
    yield ""
    yield f"  {verdict['state'].upper()}  {verdict['kind']}  {confidence}"
    yield fill(verdict["summary"], WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""
    for culprit in verdict["culprits"]:
        yield from _culprit_lines(culprit)
    yield f"  waiting    ranks {verdict['waiting'] or '-'}"
    for step in verdict["path"]:
        yield _path_line(step)
    for hint in verdict["hints"]:
        yield fill(hint, WIDTH, initial_indent="  hint       ", subsequent_indent=" " * 13)
    yield f"  limits     {verdict['limits']['why']}"
    yield f"  page       {page}"
    yield ""


def _culprit_lines(culprit: dict[str, Any]) -> Iterator[str]:
    where = culprit["where"] or "no stack"
    place = culprit["node"] or "no node"
    yield f"  culprit    rank {culprit['rank']} on {place}, pid {culprit['pid']}"
    yield f"             {culprit['condition'].replace('_', ' ')}: {where}"
    if culprit["detail"]:
        yield f"             {culprit['detail']}"


def _path_line(step: dict[str, Any]) -> str:
    targets = ", ".join(str(rank) for rank in step["for"])
    tail = f", waits for rank {targets}" if targets else ""
    return f"  path       rank {step['rank']}: {step['waits_in']}{tail}"
