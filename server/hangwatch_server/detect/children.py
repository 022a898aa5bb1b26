"""Whether the children that a rank waits for work, and what cannot be told of them."""

from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server import kernel_waits
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, RankView

# Helpers of the user's own (loggers, metric writers) are busy whether or not the rank is stuck.
_WORKING_ROLES = frozenset({"loader", "compile", "checkpoint"})
_INTERPRETERS_OWN = "helper"
_ENDED = "ended"  # in place of a role: of children that are no more
# Where the main thread waits for another thread or process of its own to finish something.
_HELPED = frozenset({Activity.LOCK, Activity.DATALOADER})
_WAITS_FOR_CHILD = ("subprocess.py", "popen_fork.py", "popen_spawn_posix.py", "pool.py")
# A pipe's other end is a child's, if the rank has any; a thread may wait for a child in turn.
_KERNEL_WAITS = ("a child process", "a pipe")
_STACK_WAITS = ("child", "thread")
# What a process in D state sleeps in when it is not storage; an empty wchan may be anything.
_NOT_STORAGE = ("vfork", "clone", "nvidia", "nv_", "uvm", "amdgpu", "kfd", "ib_", "mlx", "futex")
# Programs whose work is done by processes that are nobody's child here.
_REMOTE = frozenset({"ssh", "docker", "podman", "kubectl", "srun", "salloc"})


def moving(process: wire.ProcessFacts, s: DetectSettings) -> frozenset[str]:
    """The roles of the children that compute, read or write now, and of those that ended."""
    roles = {child.role for child in process.children if _moves(child, s)}
    if (process.ended_share or 0.0) >= s.working_cpu_share:
        roles.add(_ENDED)
    return frozenset(roles - {_INTERPRETERS_OWN})


def serve(view: RankView, roles: frozenset[str]) -> bool:
    """Whether the work of children with these roles is the rank's own.

    That of any child is where the main thread waits for one.
    """
    return bool(roles) and (_waits(view) or not roles.isdisjoint(_WORKING_ROLES))


def are_hidden(view: RankView) -> bool:
    """Whether the kernel has the rank wait for a child that the agent does not show."""
    assert view.beat is not None  # the caller looked
    process = view.beat.process
    return process.wchan.startswith("do_wait") and not _own(process)


def work_elsewhere(view: RankView) -> bool:
    """Whether the rank waits for children whose work cannot be seen on this node."""
    assert view.beat is not None  # the caller looked
    own = _own(view.beat.process)
    parents = {child.parent for child in own}
    last = [child for child in own if child.pid not in parents]
    return bool(last) and _waits(view) and all(child.name in _REMOTE for child in last)


def wait_for_storage(view: RankView) -> bool:
    """Whether a child that the rank waits for is in D state on some storage."""
    assert view.beat is not None  # the caller looked
    asleep = [
        child.role
        for child in view.beat.process.children
        if child.state == "D" and is_storage(child.wchan)
    ]
    is_helped = view.stack is not None and view.stack.activity in _HELPED
    is_worker = is_helped and not _WORKING_ROLES.isdisjoint(asleep)
    return is_worker or (bool(asleep) and _waits(view))


def is_storage(wchan: str) -> bool:
    return not any(word in wchan for word in _NOT_STORAGE)


def _waits(view: RankView) -> bool:
    assert view.beat is not None  # the caller looked
    leaf, on = (view.stack.leaf, view.stack.waits_on) if view.stack else ("", "")
    by_stack = on in _STACK_WAITS or leaf.startswith(_WAITS_FOR_CHILD)
    return by_stack or kernel_waits.words(view.beat.process.wchan) in _KERNEL_WAITS


def _moves(child: wire.ChildFacts, s: DetectSettings) -> bool:
    is_busy = (child.cpu_share or 0.0) >= s.working_cpu_share
    return is_busy or (child.io_rate or 0.0) >= s.moving_child_io_bytes_per_s


def _own(process: wire.ProcessFacts) -> list[wire.ChildFacts]:
    return [child for child in process.children if child.role != _INTERPRETERS_OWN]
