"""Cards of the culprits: those that do the same at the same place share one.

Puts together what the verdict, the stored moment and the stacks say of them; judges nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hangwatch_server import ranges
from hangwatch_server.model import (
    Condition,
    Culprit,
    Link,
    Moment,
    RankChild,
    RankFacts,
    RankGpu,
    RankProcess,
    StackClass,
    Tree,
)
from hangwatch_server.pages import card_stacks, stack_segments, words
from hangwatch_server.pages.card_stacks import CardStack

_GONE = (Condition.EXITED, Condition.KILLED, Condition.NODE_LOST)
_MAX_CHILDREN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One row of a card; `is_missing` where the value says why there is none."""

    name: str
    text: str
    is_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """`first` stands for all its ranks; facts and stacks are that one's."""

    ranks: str
    count: int
    first: Culprit
    nodes: tuple[str, ...]
    facts: tuple[Fact, ...]
    frames: CardStack
    stack: StackClass | None
    worker: CardStack
    lacks_stack: bool  # a process is there, and no stack of it is at hand


def of(
    culprits: Sequence[Culprit], wanted: Collection[int], tree: Tree, moment: Moment | None
) -> tuple[Card, ...]:
    """Cards of those culprits whose ranks are wanted, in the verdict's order."""
    classes: dict[tuple[str, str, str], list[Culprit]] = {}
    for culprit in culprits:
        if culprit.rank in wanted:
            key = (culprit.condition, culprit.where, culprit.detail)
            classes.setdefault(key, []).append(culprit)
    known = {facts.rank: facts for facts in moment.ranks} if moment is not None else {}
    return tuple(_card(alike, tree, known) for alike in classes.values())


def _card(alike: Sequence[Culprit], tree: Tree, known: dict[int, RankFacts]) -> Card:
    first = alike[0]
    frames, stack = stack_segments.stack_of(tree, first.rank)
    return Card(
        ranks=ranges.text(culprit.rank for culprit in alike),
        count=len(alike),
        first=first,
        nodes=tuple(dict.fromkeys(culprit.node for culprit in alike if culprit.node)),
        facts=_facts(first, known.get(first.rank)),
        frames=card_stacks.of(frames),
        stack=stack,
        worker=card_stacks.of(stack_segments.worker_of(tree, first.rank)),
        lacks_stack=not frames and first.condition not in _GONE and first.pid is not None,
    )


def _facts(culprit: Culprit, known: RankFacts | None) -> tuple[Fact, ...]:
    if known is None or known.process is None:
        why = "nothing was ever heard of it" if culprit.pid is None else "not kept for this rank"
        return (Fact(name="Process", text=why, is_missing=True),)
    facts = [Fact(name="Process", text=_process(known.process))]
    if known.link is not Link.LIVE:
        age = words.duration(known.age_s)
        facts[0] = Fact(name="Process", text=f"{facts[0].text} · heard {age} before")
    children = _children(known.process.children)
    if children:
        facts.append(Fact(name="Children", text=children))
    facts.append(_gpu(known.gpu))
    if known.step is not None or known.phase:
        step = "" if known.step is None else f"step {known.step:,}"
        text = " · ".join(part for part in (step, known.phase) if part)
        facts.append(Fact(name="Progress", text=text))
    return tuple(facts)


def _process(process: RankProcess) -> str:
    parts = [words.process_state(process.state)]
    if process.wchan:
        parts[0] += f" in {process.wchan}"
    if process.main_cpu_share is not None:
        parts.append(f"main thread {process.main_cpu_share * 100:.0f} % of a core")
    if process.main_still_s is not None and process.main_still_s >= 1:
        parts.append(f"not run for {words.duration(process.main_still_s)}")
    if process.threads:
        parts.append(words.plural(process.threads, "thread"))
    if process.is_gil_held:
        parts.append("the GIL is held")
    if process.exit_reason:
        parts.append(process.exit_reason)
    elif process.exit_signal is not None:
        parts.append(f"signal {process.exit_signal}")
    elif process.exit_code is not None:
        parts.append(f"exit code {process.exit_code}")
    return " · ".join(parts)


def _children(children: Sequence[RankChild]) -> str:
    """Those that work for the rank, the stuck ones first."""
    ordered = sorted(children, key=lambda child: (child.state != "D", child.role == "other"))
    told = [
        f"{child.role} {child.pid} {words.process_state(child.state)}"
        + (f" in {child.wchan}" if child.wchan else "")
        for child in ordered[:_MAX_CHILDREN]
    ]
    more = len(children) - len(told)
    return "; ".join([*told, *([f"{more} more"] if more > 0 else [])])


def _gpu(gpu: RankGpu | None) -> Fact:
    if gpu is None:
        return Fact(name="GPU", text="none is known to be its own", is_missing=True)
    parts = [f"{gpu.index}{f' ({gpu.name})' if gpu.name else ''}"]
    if gpu.utilisation is not None:
        parts.append(f"{gpu.utilisation:.0f} % busy")
    if gpu.power_w is not None:
        limit = f" of {gpu.power_limit_w:.0f}" if gpu.power_limit_w is not None else ""
        parts.append(f"{gpu.power_w:.0f}{limit} W")
    if gpu.memory_used_bytes is not None:
        parts.append(words.memory(gpu.memory_used_bytes, gpu.memory_total_bytes))
    if gpu.temperature_c is not None:
        parts.append(f"{gpu.temperature_c:.0f} °C")
    if gpu.xid:
        parts.append(f"Xid {', '.join(str(code) for code in gpu.xid[-3:])}")
    if gpu.ecc_errors:
        parts.append(f"{gpu.ecc_errors} uncorrected memory errors")
    if gpu.throttle:
        parts.append(f"clocks held down by {', '.join(gpu.throttle[:2])}")
    return Fact(name="GPU", text=" · ".join(parts))
