"""One rank waits for something outside of the job: a full pipe, a tracking server."""

from __future__ import annotations

import argparse
import os
import socket

import progress


def write_to_full_pipe() -> None:
    """Nobody reads the other end, as of a log collector that has stopped."""
    _, writing = os.pipe()
    while True:
        os.write(writing, b"loss 0.1\n" * 100)


def ask_tracking_server() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname()) as line:
            line.recv(1)


WAYS = {"pipe": write_to_full_pipe, "server": ask_tracking_server}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", choices=sorted(WAYS), required=True)
    wait = WAYS[parser.parse_args().wait]
    rank = progress.start()
    progress.train(10)
    if rank == 3:
        wait()
    progress.train(1000)


if __name__ == "__main__":
    main()
