"""Whose code a frame is."""

from __future__ import annotations

import pytest

from hangwatch_agent import wire
from hangwatch_server.stacks import frames


@pytest.mark.parametrize(
    "file",
    [
        "/opt/hangwatch/agent/hangwatch_agent/probe/calls.py",
        "/opt/hangwatch/agent/hangwatch_agent/probe/exits.py",
        "/opt/hangwatch/agent/hangwatch/__init__.py",
        "/usr/lib/python3.11/threading.py",
        "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
    ],
)
def test_probe_interpreter_and_packages_are_not_the_users_code(file: str) -> None:
    assert frames.is_framework_file(file)


@pytest.mark.parametrize(
    "file",
    ["/home/me/hangwatch/tests/programs/train.py", "/home/me/probe/calls.py", "train.py"],
)
def test_files_that_only_look_alike_are_the_users(file: str) -> None:
    assert not frames.is_framework_file(file)


def test_call_through_the_probe_is_placed_where_the_user_made_it() -> None:
    stack = [
        wire.Frame(name="watched", file="/src/agent/hangwatch_agent/probe/calls.py", line=150),
        wire.Frame(
            name="recv", file="/lib/python3.11/site-packages/torch/distributed/c.py", line=2
        ),
        wire.Frame(name="main", file="/home/me/train.py", line=7),
    ]

    assert frames.where(frames.user_frame(stack)) == "train.py:7 in main"
