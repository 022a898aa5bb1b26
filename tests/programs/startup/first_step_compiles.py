"""The first step of one rank hangs while it compiles: its backend waits for a compile server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import progress
import torch


def remote_backend(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Callable[..., Any]:
    while True:
        time.sleep(60)


def step(batch: torch.Tensor) -> torch.Tensor:
    return (batch * 2).sum()


def main() -> None:
    rank = progress.start()
    if rank == 1:
        torch.compile(step, backend=remote_backend)(torch.ones(4))
    progress.train(1000)


if __name__ == "__main__":
    main()
