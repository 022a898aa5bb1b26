"""What a finding rests on, in sentences for people, each with its kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hangwatch_agent.wire import RankBeat
from hangwatch_server import ranges
from hangwatch_server.diagnose import hardware, process
from hangwatch_server.diagnose.blame.culprits import Judged
from hangwatch_server.diagnose.calls import mismatch, order, places, record, signature
from hangwatch_server.diagnose.pending import ops, ras
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.telling import sentences
from hangwatch_server.diagnose.waiting.roots import Root
from hangwatch_server.diagnose.waiting.wait_graph import blockers
from hangwatch_server.model import Evidence, MismatchSide

_MAX_RANKS = 8
_BY_STACKS = (
    "No rank has a probe, so this is known from stacks alone: not which group or which call each "
    "waits in. Start the job with `hangwatch run` for certainty."
)
_MAX_NOTES = 64
_KINDS = {
    Form.COLLECTIVE: "counters",
    Form.MONITORED_BARRIER: "call",
    Form.P2P: "call",
    Form.RENDEZVOUS: "rendezvous",
    Form.SEEN: "stack",
}


def of(survey: Survey, item: Judged) -> tuple[Evidence, ...]:
    root, op, ranks = item.root, item.op, item.ranks
    found = [Evidence(kind=_KINDS[op.form], text=_inside_text(survey, op))]
    for rank in ranks[:_MAX_RANKS]:
        found.extend(_of_culprit(survey, op, rank))
    if item.reason:
        blamed = ranges.named(ranks)
        text = f"All have entered it; this alone speaks against {blamed}: {item.reason}."
        found.append(Evidence(kind="counters", text=text))
    found.extend(_of_op(survey, root, op))
    if op.source:
        found.append(Evidence(kind="ras", text=op.source))
    if op.unplaced:
        found.append(Evidence(kind="counters", text=_unplaced_text(op)))
    if op.doubted:
        found.append(Evidence(kind="counters", text=_doubt_text(op)))
    if root.notes:
        texts = _silence_texts(survey, root.notes)
        found.extend(Evidence(kind="node", text=text) for text in texts)
    return tuple(found)


def sides(survey: Survey, root: Root, op: PendingOp) -> tuple[MismatchSide, ...]:
    """The calls that differ, the most frequent first; on a tie no side is odd alone."""
    vote = root.vote
    if vote is None or op.seq is None:
        return ()
    entries = record.at(survey, op.gid, op.seq)
    ordered = sorted(vote.by_signature.items(), key=lambda item: (-len(item[1]), item[1]))
    found: list[MismatchSide] = []
    for side, ranks in ordered:
        entry = entries.get(ranks[0])
        call = signature.text(entry) if entry is not None and entry.op == side.op else side.op
        stack = next((s for rank in ranks[:_MAX_RANKS] if (s := survey.stack(rank))), None)
        found.append(
            MismatchSide(
                ranks=ranges.text(ranks),
                call=call,
                where=stack.where if stack is not None else "",
                is_odd=vote.right is not None and side != vote.right,
            )
        )
    return tuple(found)


def _unplaced_text(op: PendingOp) -> str:
    waits = ranges.agreeing(op.unplaced, "waits", "wait")
    return f"{sentences.capital(waits)} in a collective too: nothing tells whether in this one."


def _doubt_text(op: PendingOp) -> str:
    return (
        f"The counters of {ranges.named(op.doubted)} cannot be true beside those of the other "
        "members: they are not believed."
    )


def _silence_texts(survey: Survey, notes: Sequence[int]) -> Iterator[str]:
    """Of ranks that may be missing too, and why nobody can say whether they are."""
    silent = [rank for rank in notes if survey.fate(rank) in (Fate.SILENT, Fate.LATE)]
    heard = [rank for rank in notes if rank not in silent]
    if silent:
        they = "it" if len(silent) == 1 else "they"
        yield f"{_few(silent)} silent: nobody can say whether {they} arrived."
    if heard:
        they = "it is" if len(heard) == 1 else "they are"
        yield f"{_few(heard)} heard, but nothing tells which call {they} in."


def _few(ranks: Sequence[int]) -> str:
    """ "Ranks 2-3 are", or how many they are where a list would be long."""
    if len(ranks) > _MAX_NOTES:
        return f"{len(ranks)} ranks are"
    return sentences.capital(ranges.agreeing(ranks, "is", "are"))


def _inside_text(survey: Survey, op: PendingOp) -> str:
    call = sentences.of_call(op, survey.snapshot.groups.get(op.gid))
    verb = "is" if len(op.have) == 1 else "are"
    where = "waiting in" if op.form is Form.P2P else "inside"
    text = f"{sentences.count(len(op.have))} ({ranges.text(op.have)}) {verb} {where} {call}."
    if op.form is Form.SEEN:
        return f"{text} Where they stand: {op.detail}. {_BY_STACKS}"
    return f"{text} Init method: {op.detail}." if op.detail else text


def _of_culprit(survey: Survey, op: PendingOp, rank: int) -> Iterator[Evidence]:
    beat = survey.beat(rank)
    fate = survey.fate(rank)
    held = survey.standings.get(op.gid, {}).get(rank)
    if op.form is Form.COLLECTIVE and held is not None and rank in (*op.absent, *op.unknown):
        yield Evidence(kind="counters", text=_standing_text(rank, held.entered, held.is_exact))
    if beat is not None and fate is Fate.GONE:
        text = f"Rank {rank}'s process {beat.pid} {process.exit_text(beat.process)}."
        yield Evidence(kind="process", text=text)
    elif beat is not None and fate in (Fate.STOPPED, Fate.HELD):
        yield Evidence(kind="process", text=_process_text(survey, rank))
    elif fate is Fate.SILENT:
        yield Evidence(kind="node", text=f"Rank {rank} is not heard at this time.")
    error = ras.errors(survey, rank)
    if error:
        yield Evidence(kind="ras", text=f"NCCL reports of rank {rank}: {error}.")
    if beat is not None and beat.gpu is not None and beat.gpu.xid:
        yield Evidence(kind="gpu", text=_gpu_text(beat, rank))
    stack = survey.recent_stack(rank)
    if stack is not None:
        times = f", the same in {stack.same_leaf_captures} captures"
        repeated = times if stack.same_leaf_captures > 1 else ""
        text = f"Rank {rank} is at {stack.where or stack.leaf}{repeated}."
        yield Evidence(kind="stack", text=text, capture=stack.capture if stack.is_kept else "")


def _gpu_text(beat: RankBeat, rank: int) -> str:
    failed = hardware.words(beat)
    if failed:
        return f"Of rank {rank}: {failed}."
    assert beat.gpu is not None  # the caller has looked
    codes = ", ".join(map(str, beat.gpu.xid))
    return f"GPU {beat.gpu.index} of rank {rank} raised Xid {codes}, as a faulty program can."


def _standing_text(rank: int, entered: int | None, is_exact: bool) -> str:
    if entered is None:
        return f"Rank {rank}'s raw counter is known, its place in the group's order is not."
    if not is_exact:
        return f"Rank {rank} had entered #{entered} when it last said so."
    return f"Rank {rank} last entered #{entered}." if entered else f"Rank {rank} entered none yet."


def _process_text(survey: Survey, rank: int) -> str:
    beat = survey.beat(rank)
    assert beat is not None  # the caller has looked
    facts = beat.process
    wchan = f" in {facts.wchan}" if facts.wchan not in ("", "0") else ""
    extra = ", interpreter lock held" if facts.is_gil_held else ""
    extra += ", does not answer" if facts.is_unresponsive else ""
    return f"Rank {rank}'s process {beat.pid} is in state {facts.state}{wchan}{extra}."


def _of_op(survey: Survey, root: Root, op: PendingOp) -> Iterator[Evidence]:
    if op.form is not Form.COLLECTIVE:
        return
    is_aborted = any(survey.fate(rank) is Fate.GONE for rank in blockers(op))
    if op.done and not op.is_mismatch and not is_aborted:
        call = ops.label(op, survey.snapshot.groups.get(op.gid))
        text = f"Some members have finished {call} already; the waiting ones have not."
        yield Evidence(kind="counters", text=text)
    yield from _by_place(survey, root)
    yield from _out_of_step(survey, root)
    earlier = mismatch.first_divergence(survey, op)
    if earlier is not None:
        seq, vote = earlier
        calls = " against ".join(sorted({side.op for side in vote.by_signature}))
        text = f"The calls of this group first differ at #{seq}: {calls}."
        yield Evidence(kind="counters", text=text)


def _out_of_step(survey: Survey, root: Root) -> Iterator[Evidence]:
    """Who of a cycle has made more or fewer calls than the ranks it waits with."""
    if root.vote is not None or len(root.ops) < 2:
        return
    for rank, (dimension, calls) in sorted(order.out_of_step(survey, root.ops).items()):
        if rank in root.ranks[:_MAX_RANKS]:
            number = "one call" if abs(calls) == 1 else f"{abs(calls)} calls"
            how = "more" if calls > 0 else "fewer"
            text = (
                f"Rank {rank} has made {number} {how} on its {dimension} group "
                "than the ranks that wait in the same call."
            )
            yield Evidence(kind="calls", text=text)


def _by_place(survey: Survey, root: Root) -> Iterator[Evidence]:
    """What the lines of a mismatch say, as far as they can: a branch would look the same."""
    vote = root.vote
    found = places.compare(survey, vote) if vote is not None else None
    if vote is None or vote.right is None or found is None:
        return
    own = next((side.op for side, ranks in vote.by_signature.items() if found.rank in ranks), "")
    ahead = f"has passed that place: it seems to have skipped one {vote.right.op}"
    behind = f"has yet to come to that place: it seems to be in one extra {own}"
    text = (
        f"Rank {found.rank} is at {found.where} and the others are at {found.others}; "
        f"it {ahead if found.is_ahead else behind}."
    )
    yield Evidence(kind="stack", text=text)
