"""One rank asks a server of features that takes the connection and never answers."""

from __future__ import annotations

import socket

import progress


def fetch_features() -> bytes:
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        return client.recv(1024)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 0:
        fetch_features()
    progress.train(1000)


if __name__ == "__main__":
    main()
