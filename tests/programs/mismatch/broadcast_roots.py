"""The ranks of a broadcast name different roots: `--roots` gives the one that each rank names."""

from __future__ import annotations

import argparse

import progress
import torch
import torch.distributed as dist


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--roots", type=int, nargs="+", required=True)
    roots = parser.parse_args().roots
    rank = progress.start()
    progress.train(10)
    dist.broadcast(torch.ones(4), src=roots[rank])
    progress.train(1000)


if __name__ == "__main__":
    main()
