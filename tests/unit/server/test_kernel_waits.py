"""What the kernel's wait channel says in words."""

from __future__ import annotations

import pytest

from hangwatch_server import kernel_waits


@pytest.mark.parametrize(
    ("wchan", "words"),
    [
        ("nfs_wait_bit_killable", "the NFS server"),
        ("rpc_wait_bit_killable", "the NFS server"),
        ("request_wait_answer", "a FUSE file system"),
        ("jbd2_log_wait_commit", "the disk to write"),
        ("folio_wait_bit_common", "the disk"),
        ("io_schedule", "the disk"),
        ("locks_lock_inode_wait", "a file lock"),
        ("wait_for_partner", "the other end of a named pipe"),
        ("anon_pipe_read", "a pipe"),
        ("do_wait", "a child process"),
        ("kernel_clone", "a child process"),
        ("wait_woken", "the network"),
        ("unix_stream_read_generic", "a local socket"),
        ("poll_schedule_timeout.constprop.0", "sockets or pipes"),
        ("futex_do_wait", ""),
        ("hrtimer_nanosleep", ""),
        ("0", ""),
        ("", ""),
    ],
)
def test_wait_channel_in_words(wchan: str, words: str) -> None:
    assert kernel_waits.words(wchan) == words
