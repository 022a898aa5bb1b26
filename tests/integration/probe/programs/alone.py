"""One process that initialises a group of the size it is given, then leaves as it is told."""

from __future__ import annotations

import sys

import signals

if "auto" in sys.argv:
    import hangwatch.auto

import torch
import torch.distributed as dist

import hangwatch

dist.init_process_group(
    "gloo", init_method=f"file://{signals.FOLDER}/store", rank=0, world_size=int(sys.argv[1])
)
dist.all_reduce(torch.ones(4))
signals.tell("ready")
with hangwatch.phase("checkpoint", limit_s=30):
    hangwatch.step(7)
    signals.await_signal("leave")
if "raise" in sys.argv:
    raise LookupError("on purpose")
sys.exit(3)
