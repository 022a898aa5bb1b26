"""What the kernel function that a thread sleeps in (its wchan) says of what it waits for.

Names differ between kernel versions and file systems; those that no row knows say nothing. The
rows are read from the top.
"""

from __future__ import annotations

import re

FILE_LOCK = "a file lock"
_ROWS: tuple[tuple[str, str], ...] = (
    (r"nfs|rpc_wait|xprt_", "the NFS server"),
    (r"^(ll_|cl_|osc_|mdc_|ldlm_|ptlrpc)|lustre", "the Lustre file system"),
    (r"ceph", "the Ceph file system"),
    (r"fuse|request_wait_answer", "a FUSE file system"),
    (r"cxiWait|gpfs|mmfs", "the GPFS file system"),
    (r"cifs|smb2", "the SMB file server"),
    (r"nvidia|uvm_|^os_acquire", "the NVIDIA driver"),
    (r"amdgpu|kfd", "the AMD driver"),
    (r"jbd2|xlog_|xfs_log|fsync|writeback|balance_dirty", "the disk to write"),
    (r"io_schedule|folio_wait|wait_on_|submit_bio|blk_|bit_wait_io|bdev", "the disk"),
    (r"locks_lock|flock|posix_lock|break_lease", FILE_LOCK),
    (r"wait_for_partner", "the other end of a named pipe"),
    (r"pipe_(read|write|wait)", "a pipe"),
    (r"^do_wait|kernel_wait4|kernel_clone|wait_for_vfork", "a child process"),
    (r"unix_(stream|dgram)|skb_wait_for_more", "a local socket"),
    (r"tcp_|inet_|sk_wait|sk_stream|wait_woken", "the network"),
    (r"n_tty|tty_|wait_port_writable", "a terminal"),
    (r"(^|_)poll|do_select|ep_poll|epoll", "sockets or pipes"),
    (r"mmap_|rwsem|down_(read|write)", "memory maps of its process"),
    (r"throttle|mem_cgroup|oom", "memory of its control group"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), words) for pattern, words in _ROWS)


def words(wchan: str) -> str:
    """What is waited for: `the NFS server`; "" for a lock, a timer, or an unknown function."""
    if wchan in ("", "0") or "futex" in wchan:
        return ""
    return next((text for pattern, text in _COMPILED if pattern.search(wchan)), "")
