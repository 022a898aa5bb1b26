"""TLS of the server's own: versions, cookies, headers, trust in a site's CA, and a renewal."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.support import postgres, running_server, waiting
from tests.support.certificate import write_certificate
from tests.support.running_server import RunningServer

from hangwatch_agent import client
from hangwatch_agent.enrolment import Credentials
from hangwatch_agent.settings import AgentSettings
from hangwatch_server import tls
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def secure(migrated: str, folder: Path) -> Iterator[RunningServer]:
    cert, key = write_certificate(folder, 1)
    settings = {"HANGWATCH_TLS_CERT": str(cert), "HANGWATCH_TLS_KEY": str(key)}
    with (
        postgres.fresh_database(migrated, postgres.TEMPLATE) as url,
        postgres.data_folder() as data,
        running_server.running(url, data, settings) as server,
    ):
        yield server


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "cert.pem"))


def test_the_session_of_a_browser_is_for_https_and_this_host_alone(
    secure: RunningServer, folder: Path
) -> None:
    with httpx.Client(base_url=secure.url, verify=trusting(folder)) as browser:
        answer = browser.post("/login", data={"token": secure.admin_token})
        page = browser.get("/", headers={"accept": "text/html"})

    assert answer.headers["set-cookie"].startswith("__Host-hangwatch_session=")
    assert "secure" in answer.headers["set-cookie"].lower()
    assert page.status_code == 200
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_todays_versions_are_spoken(
    secure: RunningServer, folder: Path, version: ssl.TLSVersion
) -> None:
    context = trusting(folder)
    context.minimum_version = context.maximum_version = version

    assert _handshake(secure, context)


def test_the_oldest_version_is_1_2(folder: Path) -> None:
    cert, key = folder / "cert.pem", folder / "key.pem"
    if not cert.exists():
        write_certificate(folder, 1)

    made = tls.context(ServerSettings(tls_cert=cert, tls_key=key))

    assert made is not None
    assert made.minimum_version is ssl.TLSVersion.TLSv1_2


def _handshake(server: RunningServer, context: ssl.SSLContext) -> int:
    """The serial number of the certificate that the server shows now."""
    parts = urlsplit(server.url)
    with (
        socket.create_connection((parts.hostname, parts.port), timeout=30) as line,
        context.wrap_socket(line, server_hostname="127.0.0.1") as secured,
    ):
        certificate = secured.getpeercert()
        assert certificate is not None
        return int(str(certificate["serialNumber"]), 16)


def test_the_command_line_trusts_the_sites_own_authority(
    secure: RunningServer, folder: Path
) -> None:
    trusted = client.Client(secure.url, secure.admin_token, folder / "cert.pem")
    untrusted = client.Client(secure.url, secure.admin_token)

    assert list(trusted.jobs()) == []
    with pytest.raises(client.ClientError, match="--ca-file"):
        list(untrusted.jobs())


def test_an_agent_is_enrolled_over_tls(secure: RunningServer, folder: Path) -> None:
    wanted = client.TokenRequest(name="cluster", scopes=("enrol",), nodes="*")
    admin = client.Client(secure.url, secure.admin_token, folder / "cert.pem")
    settings = AgentSettings(
        server=secure.url,
        enrol_token=admin.create_token(wanted).token,
        node="secure-node",
        state_dir=folder / "state",
        ca_file=folder / "cert.pem",
    )

    assert asyncio.run(Credentials(settings).token()).startswith("hw_")


def test_what_is_no_tls_gets_no_answer_and_no_harm_is_done(
    secure: RunningServer, folder: Path
) -> None:
    plain = secure.url.replace("https://", "http://")
    with pytest.raises(httpx.TransportError):
        httpx.get(plain)

    assert httpx.get(f"{secure.url}/healthz", verify=trusting(folder)).status_code == 200


def test_a_renewed_certificate_is_taken_without_a_restart_and_a_broken_one_is_not(
    secure: RunningServer, folder: Path
) -> None:
    first = _handshake(secure, trusting(folder))
    write_certificate(folder, first + 1)
    secure.process.send_signal(signal.SIGHUP)

    def is_renewed() -> bool:
        try:
            return _handshake(secure, trusting(folder)) == first + 1
        except ssl.SSLError:
            return False

    waiting.until(is_renewed, 30, "the new certificate is shown")
    trusted = trusting(folder)
    (folder / "key.pem").write_text("no key")
    secure.process.send_signal(signal.SIGHUP)

    assert [_handshake(secure, trusted) for _ in range(3)] == [first + 1] * 3


@pytest.mark.parametrize(
    ("cert", "key", "words"),
    [
        ("missing.pem", None, "No such file"),
        ("empty.pem", None, "PEM"),
        (None, "key.pem", "--tls-cert"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_said_in_words(
    tmp_path: Path, cert: str | None, key: str | None, words: str
) -> None:
    (tmp_path / "empty.pem").write_text("")
    settings = ServerSettings(
        tls_cert=tmp_path / cert if cert else None, tls_key=tmp_path / key if key else None
    )

    with pytest.raises(tls.CertificateError, match=words):
        tls.context(settings)
