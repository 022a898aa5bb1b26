"""One process whose compiled step breaks its graph at a broadcast: whose files are compiled?"""

from __future__ import annotations

import pathlib
import warnings

import signals
import torch
import torch.distributed as dist
from torch._dynamo import convert_frame

compiled: set[str] = set()


def note(code: object, output: object) -> None:
    compiled.add(output.co_filename if hasattr(output, "co_filename") else "")


def step(tensor: torch.Tensor) -> torch.Tensor:
    doubled = tensor * 2
    dist.broadcast(doubled, 0)
    return doubled + 1


convert_frame.register_bytecode_hook(note)
dist.init_process_group("gloo", init_method=f"file://{signals.FOLDER}/store", rank=0, world_size=1)
fast = torch.compile(step, backend="eager")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for size in range(1, 6):
        dist.barrier()
        fast(torch.ones(size))
lines = sorted(compiled) + [f"warning: {item.message}" for item in caught]
pathlib.Path(signals.FOLDER, "compiled").write_text("\n".join(lines))
