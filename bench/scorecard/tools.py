"""Runs torch's own tools on one job: python -m bench.scorecard.tools TASK ANSWER.

A process of its own, since the tools exit, log to the root logger, read the environment and bind
ports. The debug server's pages are served by its own frontend, which asks each rank over TCP at the
address it finds in a TCPStore; a small bridge per rank leads to the rank's unix socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import io
import logging
import os
import re
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import msgspec
from bench.scorecard import peers, rows

from hangwatch_server import ranges

PAGE_TIMEOUT_S = 60.0
# Nobody listens on it: how a rank whose process is gone answers. Port 9 is `discard`.
NO_RANK = "http://127.0.0.1:9"
MISSING = re.compile(r"missing ranks: \{([\d, ]+)\}")
CULPRIT = re.compile(r"Culprit rank (\d+)")
RANK_HEAD = re.compile(r"<h2>Rank (\d+): [^<]*</h2>\s*<pre>")  # of a rank that answered


def main() -> None:
    task = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=peers.Task)
    answer = rows.Peers(
        **_pages(task),
        shipped=_torchfrtrace(task.shipped_dir),
        repaired=_torchfrtrace(task.repaired_dir, "--allow-incomplete-ranks"),
    )
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(answer))


# torchfrtrace


def _torchfrtrace(folder: str, *options: str) -> rows.TraceAnswer:
    """Its `main` with what it prints; whatever it raises is its answer."""
    if not any(Path(folder).iterdir()):
        return rows.TraceAnswer(error="no rank could be asked")
    from torch.distributed.flight_recorder import fr_trace

    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    error = ""
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            fr_trace.main([folder, *options])
    except (Exception, SystemExit) as raised:  # the tool's own end, to be told as it is
        error = f"{type(raised).__name__}: {raised}"[:200]
    finally:
        logging.getLogger().removeHandler(handler)
    return read_report(printed.getvalue(), error)


def read_report(text: str, error: str) -> rows.TraceAnswer:
    """The ranks that it names over all of its reports, from what it printed."""
    named = {int(rank) for found in MISSING.findall(text) for rank in found.split(",")}
    named |= {int(rank) for rank in CULPRIT.findall(text)}
    reports = len(MISSING.findall(text)) + len(re.findall(r"error msg:", text))
    return rows.TraceAnswer(error=error, named=ranges.text(named), reports=reports)


# The debug server


def _pages(task: peers.Task) -> dict[str, rows.PageAnswer]:
    bridges = _Bridges(task.sockets)
    addresses = bridges.start()
    _register(task, addresses)
    from torch.distributed.debug._debug_handlers import default_handlers
    from torch.distributed.debug._frontend import FrontendServer

    handlers = default_handlers()
    for handler in handlers:
        handler.fetch_timeout = task.fetch_timeout_s
    FrontendServer(task.page_port, handlers)
    return {
        "stacks": _page(task, "/stacks"),
        "trace_page": _page(task, "/fr_trace"),
    }


def _register(task: peers.Task, addresses: Mapping[int, str]) -> None:
    """Put each rank's address where `start_debug_server` would have put it."""
    import torch.distributed as dist

    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(task.store_port),
        RANK="0",
        WORLD_SIZE=str(task.world_size),
    )
    store = dist.TCPStore("127.0.0.1", task.store_port, is_master=True, wait_for_workers=False)
    for rank in range(task.world_size):
        store.set(f"debug_server/rank{rank}", addresses.get(rank, NO_RANK))
    _kept.append(store)


_kept: list[object] = []  # the store serves as long as it is referred to


def _page(task: peers.Task, path: str) -> rows.PageAnswer:
    url = f"http://localhost:{task.page_port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=PAGE_TIMEOUT_S) as answer:
            text = html.unescape(answer.read().decode(errors="replace"))
    except urllib.error.HTTPError as error:
        return rows.PageAnswer(status=error.code, error=str(error.reason)[:200])
    except OSError as error:
        return rows.PageAnswer(error=str(error)[:200])
    answered = {int(rank) for rank in RANK_HEAD.findall(text)}
    return rows.PageAnswer(
        status=200,
        answered=len(answered),
        shows_culprits=bool(task.culprits) and answered.issuperset(task.culprits),
    )


class _Bridges:
    """A TCP address per rank that leads to its unix socket, served by one thread."""

    def __init__(self, sockets: Mapping[str, str]) -> None:
        self._sockets = {int(rank): path for rank, path in sockets.items()}
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []

    def start(self) -> dict[int, str]:
        """The address of each rank."""
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        opening = asyncio.run_coroutine_threadsafe(self._open(), self._loop)
        return opening.result(PAGE_TIMEOUT_S)

    async def _open(self) -> dict[int, str]:
        addresses: dict[int, str] = {}
        for rank, path in self._sockets.items():
            server = await asyncio.start_server(self._serve(path), "127.0.0.1", 0)
            self._servers.append(server)
            addresses[rank] = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return addresses

    def _serve(self, path: str):  # type: ignore[no-untyped-def]
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_unix_connection(path)
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
            writer.close()

        return serve


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    with contextlib.suppress(OSError):
        target.close()


if __name__ == "__main__":
    main()
