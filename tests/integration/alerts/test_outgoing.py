"""Requests to the outside over real sockets: bounded, unredirected, and to the checked address."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence

import pytest
from tests.support import alerts
from tests.support.receiver import Receiver

from hangwatch_server.alerts.guard import Guard, NotAllowedError, read_allowed
from hangwatch_server.alerts.outgoing import MAX_ANSWER_BYTES, Outgoing, UnreachableError

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver.started() as found:
        yield found


def port_of(receiver: Receiver) -> str:
    return receiver.url.rpartition(":")[2]


class Rebinding:
    """A resolver of an attacker: public when it is checked, inside when it is used."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return [self._answers[min(self.asked, len(self._answers)) - 1]]


async def test_a_name_that_changes_its_mind_is_connected_where_it_was_checked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's own resolver would lead to the receiver; it must not be asked again."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the name was resolved a second time")

    rebinding = Rebinding("127.0.0.2", "127.0.0.1")
    outgoing = Outgoing(Guard(read_allowed("127.0.0.2/32"), rebinding), timeout_s=5)
    monkeypatch.setattr(socket, "getaddrinfo", _only_addresses(never))

    with pytest.raises(UnreachableError):
        # Nothing listens on 127.0.0.2, and 127.0.0.1, where the receiver is, was not checked.
        await outgoing.post(f"http://rebind.example:{port_of(receiver)}/", b"{}", {})
    await outgoing.close()

    assert rebinding.asked == 1
    assert receiver.requests == []


async def test_a_name_that_leads_inside_gets_no_request(receiver: Receiver) -> None:
    outgoing = Outgoing(Guard(read_allowed(""), Rebinding("127.0.0.1")))

    with pytest.raises(NotAllowedError):
        await outgoing.post(f"http://inside.example:{port_of(receiver)}/", b"{}", {})
    await outgoing.close()

    assert receiver.requests == []


async def test_the_host_header_keeps_the_name(receiver: Receiver) -> None:
    outgoing = Outgoing(Guard(read_allowed("127.0.0.0/8"), Rebinding("127.0.0.1")))

    await outgoing.post(f"http://named.example:{port_of(receiver)}/x", b"{}", {})
    await outgoing.close()

    assert receiver.requests[0].headers["host"] == f"named.example:{port_of(receiver)}"


async def test_a_long_answer_is_cut(receiver: Receiver) -> None:
    receiver.answer(500, "x" * (3 * MAX_ANSWER_BYTES))

    async with alerts.outgoing() as outgoing:
        answer = await outgoing.post(receiver.url, b"{}", {})

    assert len(answer.text) == MAX_ANSWER_BYTES


async def test_a_receiver_that_never_answers_is_left(receiver: Receiver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outgoing = Outgoing(Guard(read_allowed("127.0.0.0/8")), timeout_s=0.2)
        with pytest.raises(UnreachableError, match="no answer within"):
            await outgoing.post(f"http://127.0.0.1:{silent.getsockname()[1]}/", b"{}", {})
        await outgoing.close()


async def test_an_untrusted_certificate_is_named() -> None:
    with _Untrusted() as port:
        async with alerts.outgoing() as outgoing:
            with pytest.raises(UnreachableError, match="self-signed certificate"):
                await outgoing.post(f"https://127.0.0.1:{port}/", b"{}", {})


async def test_no_proxy_is_taken_from_the_environment(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    async with alerts.outgoing() as outgoing:
        answer = await outgoing.post(receiver.url, b"{}", {})

    assert answer.status == 200


async def test_a_proxy_of_the_settings_is_used(receiver: Receiver) -> None:
    outgoing = Outgoing(Guard(read_allowed("")), receiver.url.replace("//", "//user:pa%40ss@"))

    answer = await outgoing.post("http://hooks.example.org/x", b"{}", {})
    await outgoing.close()
    (request,) = receiver.requests

    assert answer.status == 200
    assert request.path == "http://hooks.example.org/x"
    assert request.headers["proxy-authorization"].startswith("Basic ")


def _only_addresses(otherwise: object) -> object:
    """getaddrinfo for addresses, which asks nobody; anything else is a failure."""
    real = socket.getaddrinfo

    def resolve(host: object, *rest: object, **named: object) -> object:
        text = host.decode() if isinstance(host, bytes) else str(host)
        if not text.replace(".", "").isdigit():
            return otherwise()  # type: ignore[operator]
        return real(host, *rest, **named)  # type: ignore[arg-type]

    return resolve


class _Untrusted:
    """One TLS handshake with a certificate that nobody has signed but itself."""

    def __enter__(self) -> int:
        self._folder = tempfile.TemporaryDirectory()
        self._socket = socket.create_server(("127.0.0.1", 0))
        subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
        made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
        files = ("-keyout", f"{self._folder.name}/key", "-out", f"{self._folder.name}/cert")
        subprocess.run([*made, *files], check=True, capture_output=True)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return int(self._socket.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._thread.join(5)
        self._folder.cleanup()

    def _serve(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self._folder.name}/cert", f"{self._folder.name}/key")
        with contextlib.suppress(OSError):
            connection, _ = self._socket.accept()
            with connection, context.wrap_socket(connection, server_side=True):
                pass
