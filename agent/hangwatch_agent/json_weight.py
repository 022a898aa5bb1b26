"""What a JSON text would weigh in memory, judged before it is read.

A job writes some of what the agent reads. Of 64 MiB of empty lists a parser makes gigabytes, and
the node's memory is the job's.
"""

from __future__ import annotations

MOST_BYTES = 768 * 1024 * 1024  # a RAS answer of 130,000 members takes about 600 MiB
_OBJECT_BYTES = 600  # as a struct with lists of its own
_ITEM_BYTES = 100  # a list, or a key with its value


def is_too_heavy(data: bytes) -> bool:
    """By counts that no escape in a text can lower."""
    items = data.count(b"[") + data.count(b":")
    return data.count(b"{") * _OBJECT_BYTES + items * _ITEM_BYTES > MOST_BYTES
