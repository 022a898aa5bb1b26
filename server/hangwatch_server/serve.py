"""One server process from its socket to its end: bind, open, announce, serve, stop within seconds.

uvicorn runs the protocol; signals are ours, because a stop has to wake long polls and streams
first.
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
import uvloop
from fastapi import FastAPI

import hangwatch_server
from hangwatch_agent import wire
from hangwatch_server import app as application
from hangwatch_server import garbage, logs, protocol, tls, tracing
from hangwatch_server.errors import HangwatchError
from hangwatch_server.security import access, peers
from hangwatch_server.settings import ServerSettings
from hangwatch_server.settings.address import url_of

GRACE_S = 3  # for answers under way when the server is asked to stop
BACKLOG = 2048
MAX_FILES = 65_536
# A frame that is a little too large still arrives, and ingest refuses it in words; past this,
# uvicorn drops the connection with close code 1009.
ROOM_FOR_A_REASON = 1024 * 1024


_log = logs.get()


class PortError(HangwatchError):
    """The address cannot be listened on."""


def run(settings: ServerSettings, origins: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT; raise HangwatchError when that cannot begin."""
    # A reload that comes before the loop can take it ends nothing; `_on_hangup` follows.
    if not _has_terminal():
        signal.signal(signal.SIGHUP, lambda *_: None)
    logs.configure(settings.log_level, settings.log_format)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    app = application.create_app(settings, origins)
    tls.context(settings)  # a certificate that cannot be used is said before anything starts
    _raise_file_limit()
    # Bound before anything slow starts: a port in use is then said at once.
    with listen(settings.host, settings.port) as listener, tracing.collecting(os.environ):
        uvloop.run(_serve(app, settings, listener))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raise PortError with what to do."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise PortError(
                f"'{host}' is no address of this machine: choose one with --host, as in "
                "`hangwatch serve --host 0.0.0.0`"
            ) from error
        raise PortError(
            f"cannot listen on {host}:{port}: {_cause(error)}; see who does with "
            f"`ss -ltnp 'sport = :{port}'`, or choose another port, as in "
            f"`hangwatch serve --port {port + 1}`"
        ) from error
    except OverflowError as error:
        raise PortError(f"{port} is no port: choose one from 1 to 65535 with --port") from error


def _crowd(settings: ServerSettings) -> protocol.Crowd:
    """However much a setting allows one address, it cannot take all files that may be open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = settings.connections_each
    each = most if files == resource.RLIM_INFINITY else min(most, files // 2)
    return protocol.Crowd(each, peers.parse(settings.trusted_proxies))


def _raise_file_limit() -> None:
    """Every agent, page and poll is a connection: as many as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _cause(error: OSError) -> str:
    # The socket module adds a copy of the address to the system's own words.
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error)


async def _serve(app: FastAPI, settings: ServerSettings, listener: socket.socket) -> None:
    certificate = tls.context(settings)
    # Of port 0, which means any: links in messages need the real one.
    settings = dataclasses.replace(settings, port=listener.getsockname()[1])
    app.state.settings = settings
    server = _Server(app, settings, url_of(settings), certificate)
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None  # a coroutine always runs in one
    loop.add_signal_handler(signal.SIGHUP, _on_hangup, server, task, certificate, settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop, task)
    # Cancelled by `stop` while still starting up: that is the end that was asked for.
    with suppress(asyncio.CancelledError):
        async with app.router.lifespan_context(app):
            garbage.seldom()
            sys.setswitchinterval(SWITCH_S)
            await server.serve(sockets=[listener])


def _on_hangup(
    server: _Server,
    task: asyncio.Task[Any],
    certificate: ssl.SSLContext | None,
    settings: ServerSettings,
) -> None:
    """Read the certificate again; where there is none, only a terminal that closed means stop."""
    if certificate is not None:
        tls.reload(certificate, settings)
    elif _has_terminal():
        server.stop(task)
    else:
        _log.info("nothing_to_reload", why="this server has no TLS certificate of its own")


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


# Of Python's lock between the event loop and a diagnosis in its thread. Longer, and each step of a
# request waits that long for its turn.
SWITCH_S = 0.001


class _Server(uvicorn.Server):
    def __init__(
        self,
        app: FastAPI,
        settings: ServerSettings,
        url: str,
        certificate: ssl.SSLContext | None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol.bounded(_crowd(settings)),
                ws="websockets-sansio",
                ws_max_size=wire.MAX_FRAME_BYTES + ROOM_FOR_A_REASON,
                ws_per_message_deflate=False,  # costs more CPU than a cluster's network needs
                lifespan="off",  # opened around it, so that a failure stays an exception
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # security.peers believes those that the settings name
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self.config.load()
        self.config.ssl = certificate
        self._app = app
        self._url = url
        self._settings = settings
        self._goodbye: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled by `stop`; uvicorn would raise them again before we have closed."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        announce(self._url, self._settings, self._app.state.new_admin_token)

    def stop(self, task: asyncio.Task[Any]) -> None:
        """The first signal ends in good order, and each further one cuts short what is left."""
        if not self.started:
            task.cancel()
        elif self._goodbye is None:
            self._goodbye = asyncio.create_task(self._say_goodbye())
        elif not self._goodbye.done():
            self._goodbye.cancel()
        else:
            self.force_exit = True

    async def _say_goodbye(self) -> None:
        try:
            await application.say_goodbye(self._app)
        except Exception:
            # The boundary of a server's end: it ends, whatever others make of it.
            logs.get().exception("goodbye_failed")
        finally:
            self.should_exit = True
            application.begin_stop(self._app)


def announce(url: str, settings: ServerSettings, new_token: str | None) -> None:
    """Say on stdout where the server is, and what to paste next."""
    lines = [f"Hangwatch {hangwatch_server.__version__} is ready: {url}/"]
    if new_token is not None:
        lines += [
            "",
            "Admin token, shown only this once:",
            f"  export HANGWATCH_SERVER={url} HANGWATCH_TOKEN={new_token}",
        ]
    if settings.allow_anonymous:
        lines += ["", "Anybody on this machine can read without a token (--allow-anonymous)."]
    lines += [
        "",
        "A token for each training node, then the agent there, then the job:",
        "  hangwatch token create --scope agent --node NODE",
        f"  HANGWATCH_TOKEN=… hangwatch agent --server {url} --node NODE",
        "  hangwatch run -- torchrun train.py",
    ]
    if access.is_loopback(settings.host):
        lines += ["", "Only this machine reaches it; for others: hangwatch serve --host 0.0.0.0"]
    print("\n".join(lines), flush=True, file=sys.stdout)
