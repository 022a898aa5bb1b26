"""Every rank first does the half of an exchange for which its neighbour must do the other half."""

from __future__ import annotations

import argparse

import progress
import torch
import torch.distributed as dist


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", choices=["send", "recv"], required=True)
    first = parser.parse_args().first
    rank = progress.start()
    size = dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    progress.train(10)
    if first == "send":
        dist.send(torch.ones(4), dst=after)
        dist.recv(torch.zeros(4), src=before)
    else:
        dist.recv(torch.zeros(4), src=before)
        dist.send(torch.ones(4), dst=after)
    progress.train(1000)


if __name__ == "__main__":
    main()
