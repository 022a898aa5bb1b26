"""Every missing stack has a reason and a remedy that names the exact thing to change."""

from __future__ import annotations

import pytest

from hangwatch_agent.permissions import Problem, explain

DENIED = "Error: Permission Denied: Try running again with elevated permissions"


def problem(
    error: str, uid: int = 1000, euid: int = 1000, can: bool = False, scope: int = 0
) -> Problem:
    return explain(error, uid=uid, euid=euid, can_ptrace=can, scope=scope, is_alive=True)


@pytest.mark.parametrize(
    ("found", "reason", "remedy"),
    [
        (problem(DENIED, scope=1), "ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0"),
        (problem(DENIED, scope=3, can=True), "ptrace_scope is 3", "reboot"),
        (problem(DENIED, uid=0), "of uid 0", "CAP_SYS_PTRACE"),
        (problem(DENIED, uid=1000, euid=0), "lacks CAP_SYS_PTRACE", "--cap-add SYS_PTRACE"),
        (problem(DENIED, uid=1000, euid=0), "of uid 1000", "securityContext"),
        (problem(DENIED, can=True), "although", "user namespace"),
        (problem("Error: No such process (os error 3)"), "gone", "ended"),
        (problem("Error: Failed to find a python version"), "interpreter", "py-spy"),
        (problem(""), "without a word", "again"),
    ],
)
def test_reason_and_remedy(found: Problem, reason: str, remedy: str) -> None:
    assert reason in found.reason
    assert remedy in found.remedy
