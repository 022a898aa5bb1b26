"""Names the ranks that hold a job up, and says how it knows: pure functions of one snapshot.

Its rooms, in the order in which a diagnosis passes them; arrows run only from a later room to an
earlier one: `pending` (what is entered and not finished), `calls` (who called something else),
`waiting` (who waits for whom), `blame` (who holds the others up, how sure), `telling` (words).

No memory, clock or I/O: how long something has stood still comes with the snapshot. Whether that is
long enough for an alarm is for `detect` to say.
"""

from __future__ import annotations

from hangwatch_server import garbage
from hangwatch_server.diagnose import quiet, survey
from hangwatch_server.diagnose.blame import culprits
from hangwatch_server.diagnose.coverage import coverage
from hangwatch_server.diagnose.families import families, lags, members
from hangwatch_server.diagnose.mesh import axes
from hangwatch_server.diagnose.moments import moment
from hangwatch_server.diagnose.rank_detail import rank_detail
from hangwatch_server.diagnose.rows import Tables, group_row, group_rows, rank_rows, tables
from hangwatch_server.diagnose.settings import DEFAULT, DiagnoseSettings
from hangwatch_server.diagnose.telling import finding
from hangwatch_server.diagnose.waiting import roots, wait_graph
from hangwatch_server.model import Finding, PathStep, Snapshot

__all__ = [
    "DEFAULT",
    "DiagnoseSettings",
    "Tables",
    "axes",
    "coverage",
    "diagnose",
    "families",
    "group_row",
    "group_rows",
    "lags",
    "members",
    "moment",
    "path",
    "rank_detail",
    "rank_rows",
    "tables",
]

MAX_FINDINGS = 8


def diagnose(snapshot: Snapshot, settings: DiagnoseSettings = DEFAULT) -> tuple[Finding, ...]:
    """Findings of the snapshot, the weightiest first; never empty (Kind.NONE if nothing).

    1. Where each rank stands on each group, repaired by what its peers prove.
    2. The bipartite AND wait-for graph of ranks and pending operations.
    3. Its sinks are the roots; each becomes one finding with its victims.
    """
    with garbage.uncollected():
        return _diagnose(snapshot, settings)


def _diagnose(snapshot: Snapshot, settings: DiagnoseSettings) -> tuple[Finding, ...]:
    looked = survey.survey(snapshot, settings)
    if looked.is_over():
        return (quiet.finding(looked),)  # the dead hold nobody up
    waiting = wait_graph.build(looked)
    judged = culprits.judge(waiting, roots.of(waiting))
    if not judged:
        return (quiet.finding(looked),)
    return finding.findings(waiting, judged[:MAX_FINDINGS])


def path(
    snapshot: Snapshot, rank: int, settings: DiagnoseSettings = DEFAULT
) -> tuple[PathStep, ...]:
    """Why this rank waits, step by step to what a culprit does; () when it waits for nobody."""
    looked = survey.survey(snapshot, settings)
    waiting = wait_graph.build(looked)
    node = waiting.node_of.get(rank)
    for item in culprits.judge(waiting, roots.of(waiting)):
        if node in item.root.reached:
            return finding.path(waiting, rank, item)
    return ()
