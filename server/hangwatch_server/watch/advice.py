"""What a scheduler should do about a job, and which nodes to leave out.

A node is left out only when the evidence points at the node, not merely at a rank on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from hangwatch_server.diagnose import hardware
from hangwatch_server.model import (
    Action,
    Condition,
    Culprit,
    Finding,
    Kind,
    NodeHistory,
    Snapshot,
    State,
)

# Jobs with confirmed incidents there within a month. One job that hangs again and again is its own
# program's work, as long as nothing else speaks against the node.
REPEAT_OFFENDER = 3
_PROGRAM_ERRORS = {Kind.MISMATCH, Kind.DEADLOCK, Kind.UNMATCHED_P2P}
# A D state on these is the file server's trouble, which every node has alike.
_NETWORK_STORAGE = ("nfs", "rpc", "lustre", "ll_", "ceph", "fuse", "gpfs", "cifs", "smb", "beegfs")


def action(
    state: State,
    finding: Finding,
    snapshot: Snapshot,
    history_by_node: Mapping[str, NodeHistory],
    *,
    evidence_stored: bool,
    is_repeated: bool = False,
) -> Action:
    """The advice for a state; `history_by_node` is of the last 30 days.

    `is_repeated`: earlier attempts of the job came to the same end.
    """
    excluded = _excluded(finding, snapshot, history_by_node) if _is_over(state) else ()
    return Action(
        advice=_advice(state, finding.kind, bool(excluded), is_repeated),
        exclude_nodes=excluded,
        evidence_stored=evidence_stored,
    )


def _is_over(state: State) -> bool:
    return state in (State.HUNG, State.FAILED)


def _advice(state: State, kind: Kind, has_excluded: bool, is_repeated: bool) -> str:
    if _is_over(state):
        if has_excluded:
            return "restart_excluding"
        # A restarted program makes the same wrong calls again.
        return "investigate" if is_repeated or kind in _PROGRAM_ERRORS else "restart"
    if state is State.SLOW:
        return "investigate"
    if state in (State.SUSPECTED, State.EXPECTED_WAIT, State.UNKNOWN):
        return "wait"
    return "none"


def _excluded(
    finding: Finding, snapshot: Snapshot, history_by_node: Mapping[str, NodeHistory]
) -> tuple[str, ...]:
    nodes = {
        culprit.node
        for culprit in finding.culprits
        if culprit.node
        and (
            _is_repeat_offender(culprit.node, finding.kind, history_by_node)
            or _blames_node(culprit, snapshot)
        )
    }
    return tuple(sorted(nodes))


def _is_repeat_offender(node: str, kind: Kind, history_by_node: Mapping[str, NodeHistory]) -> bool:
    """What wrong calls of a program do, they do on any node."""
    jobs = history_by_node.get(node, NodeHistory()).jobs
    return kind not in _PROGRAM_ERRORS and jobs >= REPEAT_OFFENDER


def _blames_node(culprit: Culprit, snapshot: Snapshot) -> bool:
    if culprit.condition is Condition.NODE_LOST:
        return True
    view = snapshot.ranks.get(culprit.rank)
    if view is None or view.beat is None:
        return False
    if hardware.failure(view.beat) is not None:
        return True
    wchan = view.beat.process.wchan
    is_local = bool(wchan) and not any(name in wchan for name in _NETWORK_STORAGE)
    return culprit.condition is Condition.UNINTERRUPTIBLE and is_local
