"""Plain advice tied to a finding's evidence: a table of conditions and sentences.

The sources are forum answers and issues about real hangs (PyTorch documentation, pytorch#18689 on
setting the device first, the DDP join() discussion, the torch.distributed hang guides).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hangwatch_server.diagnose.blame import conditions
from hangwatch_server.diagnose.calls.signature import Signature
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Condition, Culprit, Kind, StackFacts


class Case(NamedTuple):
    """What a hint's condition may look at."""

    survey: Survey
    kind: Kind
    op: PendingOp
    culprits: tuple[Culprit, ...]
    waiting: tuple[StackFacts, ...]  # stacks of some waiting ranks
    calls: frozenset[Signature]  # the calls that differ, for a mismatch

    def has(self, condition: Condition) -> bool:
        return any(culprit.condition is condition for culprit in self.culprits)


class Hint(NamedTuple):
    applies: Callable[[Case], bool]
    text: str


def of(case: Case) -> tuple[str, ...]:
    found = [hint.text for hint in HINTS if hint.applies(case)]
    if _is_file_store(case):
        found.insert(0, _file_store_text(case))
    return tuple(found)


def _in_join(case: Case) -> bool:
    return any(stack.is_in_join for stack in case.waiting)


def _in_ddp(case: Case) -> bool:
    return any(stack.is_in_backward or stack.is_in_forward for stack in case.waiting)


def _is_uneven(case: Case) -> bool:
    is_barrier_clash = _has_barrier(case)
    left = {Condition.FINISHED, Condition.IN_USER_CODE, Condition.EXITED}
    is_left = case.kind is Kind.MISSING_RANKS and any(
        c.condition in left and not _is_explained(c) for c in case.culprits
    )
    return (is_left and _in_ddp(case)) or is_barrier_clash


def _is_explained(culprit: Culprit) -> bool:
    """Whether the evidence already says why it does not come: an error, or what it waits for."""
    if culprit.condition is Condition.EXITED:
        return "code 0" not in culprit.detail
    return culprit.detail.startswith("waits for")


def _has_barrier(case: Case) -> bool:
    return any(call.op == "barrier" for call in case.calls)


def _misses_a_gradient(case: Case) -> bool:
    """The others wait for a bucket of gradients, and the culprit has not left training."""
    is_elsewhere = case.has(Condition.IN_USER_CODE) or case.has(Condition.IN_COLLECTIVE)
    is_in_backward = any(stack.is_in_backward for stack in case.waiting)
    return case.kind is Kind.MISSING_RANKS and is_in_backward and is_elsewhere


def _barrier_in_join(case: Case) -> bool:
    """join()'s own all_reduces carry one element; without stacks that is how they are known."""
    is_counting = any(call.op == "all_reduce" and call.size == 1 for call in case.calls)
    return _has_barrier(case) and (_in_join(case) or (is_counting and not case.waiting))


def _object_collective(case: Case) -> bool:
    names = {"all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"}
    if case.kind is not Kind.MISSING_RANKS:
        return False
    return any(s.op in names for s in case.waiting) or _gathers_sizes(case)


def _gathers_sizes(case: Case) -> bool:
    """all_gather_object begins with an all_gather of one int64 per rank: the pickles' sizes."""
    entry = next(iter(case.op.have.values()))
    return (
        entry is not None
        and entry.op == "all_gather"
        and entry.input_dtypes == ("Long",)
        and entry.input_sizes == ((1,),)
    )


def _is_skipped(case: Case) -> bool:
    """Of ranks that are in their own code, or alive at a place that nobody sees."""
    is_elsewhere = any(
        (c.condition is Condition.IN_USER_CODE and not _is_explained(c))
        or (c.condition is Condition.UNKNOWN and not c.detail)
        for c in case.culprits
    )
    return case.kind is Kind.MISSING_RANKS and case.op.form is not Form.P2P and is_elsewhere


def _is_nccl(case: Case) -> bool:
    group = case.survey.snapshot.groups.get(case.op.gid)
    return group is not None and "nccl" in group.backend.lower()


def _is_network(case: Case) -> bool:
    is_known = case.op.form is not Form.SEEN  # stacks cannot tell it from calls that differ
    return case.kind is Kind.STALLED_COLLECTIVE and not case.culprits and is_known


def _is_multi_node(case: Case) -> bool:
    return len({view.node for view in case.survey.snapshot.ranks.values() if view.node}) > 1


def _nobody_missing(case: Case) -> bool:
    return case.kind is Kind.INCOMPLETE_RENDEZVOUS and not case.culprits


def _never_seen(case: Case) -> bool:
    return case.kind is Kind.INCOMPLETE_RENDEZVOUS and any(c.pid is None for c in case.culprits)


def _stuck_worker(case: Case) -> bool:
    return case.has(Condition.IN_DATALOADER)


def _waits_on(case: Case, whom: str) -> bool:
    """Whether a culprit in a lock waits for a "thread" or a "child", as its stack shows it."""
    stacks = (
        case.survey.recent_stack(culprit.rank)
        for culprit in case.culprits
        if culprit.condition is Condition.IN_LOCK
    )
    return any(stack is not None and stack.waits_on == whom for stack in stacks)


def _waits_for_file_lock(case: Case) -> bool:
    return any(c.condition is Condition.IN_LOCK and "file lock" in c.detail for c in case.culprits)


def _is_on_storage(case: Case) -> bool:
    if case.has(Condition.UNINTERRUPTIBLE):
        return True
    beats = (case.survey.beat(culprit.rank) for culprit in case.culprits)
    children = (conditions.stuck_child(beat.process) for beat in beats if beat is not None)
    return any(child is not None and child.state == "D" for child in children)


def _is_file_store(case: Case) -> bool:
    return case.op.form is Form.RENDEZVOUS and case.op.detail.startswith("file:")


def _file_store_text(case: Case) -> str:
    return (
        f"The rendezvous is {case.op.detail}: a file left over from an earlier run makes some "
        "ranks wait for addresses that are gone. Delete it before each start, or use env://."
    )


HINTS: tuple[Hint, ...] = (
    Hint(
        _is_uneven,
        "Ranks seem to have uneven inputs: the one with fewer batches leaves the loop while the "
        "others wait in DDP's collectives. Give every rank the same number of batches "
        "(drop_last=True, DistributedSampler), or wrap the loop in model.join().",
    ),
    Hint(
        _misses_a_gradient,
        "If the forward of this rank left out a layer, DistributedDataParallel never reduces that "
        "layer's gradients here: use every parameter in each step, or pass "
        "find_unused_parameters=True.",
    ),
    Hint(
        _barrier_in_join,
        "A barrier inside model.join() misaligns join's own all_reduces: move the barrier after "
        "the with block.",
    ),
    Hint(
        _object_collective,
        "Object collectives such as all_gather_object must be called by every rank of the group: "
        "look for a branch (rank == 0, a missing metric) around the call.",
    ),
    Hint(
        _is_skipped,
        "If it is past the call: every rank of a group must make the same calls in the same "
        "order. Look for a branch that let it skip the call, such as a short batch or an early "
        "return.",
    ),
    Hint(
        lambda case: case.kind is Kind.MISMATCH,
        "Compare the two call sites: ranks took different branches, or made one call more or "
        "less before this one.",
    ),
    Hint(
        lambda case: case.kind is Kind.DEADLOCK and case.op.form is not Form.P2P,
        "Ranks enter collectives of different groups in different order: order them alike on "
        "every rank.",
    ),
    Hint(
        lambda case: case.kind is Kind.DEADLOCK and case.op.form is Form.P2P,
        "Blocking sends and receives face each other: let one side receive first, or use "
        "batch_isend_irecv; where one sends and the other receives, check that the tags agree.",
    ),
    Hint(
        lambda case: case.kind is Kind.UNMATCHED_P2P,
        "Check that sends and receives pair up: same peer, same group, same tag, same count.",
    ),
    Hint(
        lambda case: case.survey.shares_a_gpu(),
        "Several ranks use the same GPU: call torch.cuda.set_device(local_rank) before "
        "init_process_group.",
    ),
    Hint(
        lambda case: case.has(Condition.GPU_BUSY),
        "It waits for its GPU: see what runs there, and set the device before "
        "init_process_group so that ranks do not share a GPU.",
    ),
    Hint(
        _stuck_worker,
        "The training process waits for its loader workers: look at the workers' stacks; try "
        "num_workers=0 or a DataLoader timeout to see the error.",
    ),
    Hint(
        _is_on_storage,
        "D state is a wait inside the kernel, usually for storage: check the file system (NFS, "
        "Lustre, FUSE) that this process reads on its node. Signals will not end it.",
    ),
    Hint(
        lambda case: case.has(Condition.GIL_HELD),
        "Native code holds the interpreter lock: take native stacks (--native) to see which "
        "library; it should release the lock around long calls.",
    ),
    Hint(
        lambda case: _waits_on(case, "thread"),
        "Another thread of the same process seems to hold the lock, or to owe the result: look at "
        "that thread's stack; a lock taken before fork() stays locked in the child.",
    ),
    Hint(
        lambda case: _waits_on(case, "child"),
        "It waits for a child process: look at that child's stack and state.",
    ),
    Hint(
        _waits_for_file_lock,
        "Another process holds the file lock: `lsof` or `fuser` on its node names it, and on a "
        "shared file system it may be on another node.",
    ),
    Hint(
        lambda case: case.has(Condition.STOPPED),
        "The process was stopped (SIGSTOP, a debugger, a job suspend): SIGCONT (kill -CONT PID) "
        "lets it go on.",
    ),
    Hint(
        lambda case: case.has(Condition.KILLED) or case.has(Condition.EXITED),
        "A rank is gone and the others wait for it: read the end of its log, and dmesg on its "
        "node for the OOM killer; the job has to be restarted.",
    ),
    Hint(
        lambda case: case.has(Condition.NODE_LOST),
        "The node's agent is not heard: check whether the machine is up and reachable before "
        "blaming the job.",
    ),
    Hint(
        _never_seen,
        "Check that the launcher started as many processes as the world size says, on every node.",
    ),
    Hint(
        lambda case: (_nobody_missing(case) or _never_seen(case)) and not _is_file_store(case),
        "Check MASTER_ADDR and that a firewall leaves MASTER_PORT open between the nodes; and "
        "that GLOO_SOCKET_IFNAME / NCCL_SOCKET_IFNAME do not pick docker0 or lo.",
    ),
    Hint(
        lambda case: _is_network(case) and (_is_nccl(case) or _is_multi_node(case)),
        "All ranks are inside: suspect the network. Check that NCCL_SOCKET_IFNAME / "
        "GLOO_SOCKET_IFNAME pick the right interface (not docker0) and that no port is "
        "firewalled; set NCCL_DEBUG=INFO.",
    ),
    Hint(
        lambda case: _is_network(case) and _is_nccl(case) and not _is_multi_node(case),
        "On one machine, try NCCL_P2P_DISABLE=1: if that helps, IOMMU or PCIe ACS breaks "
        "transfers between GPUs and should be off.",
    ),
)
