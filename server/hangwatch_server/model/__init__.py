"""Plain data that the rooms of the server hand to each other: no behaviour, no I/O, no clock.

Field names are the REST contract's, so that what is stored, served and shown is one thing. Rank
sets are range text wherever they can be long. Durations are seconds, wall times aware UTC.
"""

from __future__ import annotations

from hangwatch_server.model.records import (
    Capture,
    Comparison,
    Earlier,
    Incident,
    IncidentEvent,
    Move,
    PartRow,
    StackClass,
    Tree,
    TreeNode,
)
from hangwatch_server.model.rows import (
    GroupMember,
    GroupRow,
    Hold,
    Job,
    NodeRow,
    RankRow,
    TimelinePoint,
)
from hangwatch_server.model.snapshot import (
    GroupView,
    RankView,
    RasMember,
    RasView,
    Snapshot,
    StackFacts,
)
from hangwatch_server.model.verdict import (
    Action,
    Coverage,
    Culprit,
    Evidence,
    Finding,
    GroupRef,
    Limits,
    MismatchSide,
    PathStep,
    Shift,
    Verdict,
    WaitEdge,
)
from hangwatch_server.model.words import (
    ACTIVE_INCIDENTS,
    SHOWN_INCIDENTS,
    Activity,
    CaptureState,
    Condition,
    IncidentState,
    Kind,
    Link,
    State,
)

__all__ = [
    "ACTIVE_INCIDENTS",
    "SHOWN_INCIDENTS",
    "Action",
    "Activity",
    "Capture",
    "CaptureState",
    "Comparison",
    "Condition",
    "Coverage",
    "Culprit",
    "Earlier",
    "Evidence",
    "Finding",
    "GroupMember",
    "GroupRef",
    "GroupRow",
    "GroupView",
    "Hold",
    "Incident",
    "IncidentEvent",
    "IncidentState",
    "Job",
    "Kind",
    "Limits",
    "Link",
    "MismatchSide",
    "Move",
    "NodeRow",
    "PartRow",
    "PathStep",
    "RankRow",
    "RankView",
    "RasMember",
    "RasView",
    "Shift",
    "Snapshot",
    "StackClass",
    "StackFacts",
    "State",
    "TimelinePoint",
    "Tree",
    "TreeNode",
    "Verdict",
    "WaitEdge",
]
