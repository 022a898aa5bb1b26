"""A signal handler of one rank asks a server that never answers; its step does not go on."""

from __future__ import annotations

import os
import signal
import socket
from types import FrameType

import progress

server = socket.socket()


def ask_scheduler(_number: int, _frame: FrameType | None) -> None:
    with socket.create_connection(server.getsockname()) as line:
        line.recv(1)


def main() -> None:
    server.bind(("127.0.0.1", 0))
    server.listen()
    signal.signal(signal.SIGUSR1, ask_scheduler)
    rank = progress.start()
    progress.train(10)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGUSR1)
    progress.train(1000)


if __name__ == "__main__":
    main()
