"""Healthy: rank 0 evaluates; for 40 seconds it waits for a judging service, which answers."""

from __future__ import annotations

import socket
import threading
import time

import progress
import torch.distributed as dist

JUDGED_AFTER_S = 40.0


def answer(service: socket.socket) -> None:
    line, _ = service.accept()
    with line:
        time.sleep(JUDGED_AFTER_S)
        line.sendall(b"0.7")


def evaluate() -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        threading.Thread(target=answer, args=(service,), daemon=True).start()
        with socket.create_connection(service.getsockname()) as line:
            line.recv(16)


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 0:
        evaluate()
    dist.barrier()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
