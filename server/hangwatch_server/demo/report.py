"""Cases and verdicts as the demo prints them in the terminal. Text only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from textwrap import fill
from typing import Any

from hangwatch_server.demo.cases import FAMILIES, Case

WIDTH = 92
_LABEL_WIDTH = 11


def row(label: str, text: str) -> str:
    """A labelled text, folded so that its further lines stand under its first."""
    return fill(
        text,
        WIDTH,
        initial_indent=f"  {label + ' ':<{_LABEL_WIDTH}}",
        subsequent_indent=" " * (_LABEL_WIDTH + 2),
        break_long_words=False,  # paths and addresses are copied whole
        break_on_hyphens=False,
    )


def case_lines(cases: Iterable[Case]) -> Iterator[str]:
    """The cases under the sentences of their families, in the order given."""
    for family, members in groupby(cases, lambda case: case.family):
        yield f"{family}: {FAMILIES[family]}"
        for case in members:
            yield f"  {case.name:24} {case.title}"


def verdict_lines(verdict: dict[str, Any], page: str) -> Iterator[str]:
    """The verdict document of the REST contract, culprits first."""
    confidence = f"(confidence {verdict['confidence']:.0%})"
    yield ""
    yield f"  {verdict['state'].upper()}  {verdict['kind']}  {confidence}"
    yield fill(verdict["summary"], WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""
    for culprit in verdict["culprits"]:
        yield from _culprit_lines(culprit)
    yield row("waiting", f"ranks {verdict['waiting'] or '-'}")
    for step in verdict["path"]:
        yield row("path", _path_text(step))
    for step in verdict["cycle"]:
        yield row("cycle", _path_text(step))
    for hint in verdict["hints"]:
        yield row("hint", hint)
    yield row("limits", verdict["limits"]["why"])
    yield row("page", page)
    yield ""


def _culprit_lines(culprit: dict[str, Any]) -> Iterator[str]:
    where = culprit["where"] or "no stack"
    place = culprit["node"] or "no node"
    pid = f", pid {culprit['pid']}" if culprit["pid"] is not None else ""
    yield row("culprit", f"rank {culprit['rank']} on {place}{pid}")
    yield row("", f"{culprit['condition'].replace('_', ' ')}: {where}")
    if culprit["detail"]:
        yield row("", culprit["detail"])


def _path_text(step: dict[str, Any]) -> str:
    targets = ", ".join(str(rank) for rank in step["for"])
    tail = f", waits for rank {targets}" if targets else ""
    return f"rank {step['rank']}: {step['waits_in']}{tail}"
