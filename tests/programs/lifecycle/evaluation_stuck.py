"""Rank 1 evaluates with a metrics service that never answers; the others are at the barrier."""

from __future__ import annotations

import socket

import progress
import torch.distributed as dist


def evaluate() -> None:
    with socket.socket() as service:
        service.bind(("127.0.0.1", 0))
        service.listen()
        with socket.create_connection(service.getsockname()) as line:
            line.recv(1)


def main() -> None:
    rank = progress.start()
    progress.train(20)
    if rank == 1:
        evaluate()
    dist.barrier()


if __name__ == "__main__":
    main()
