"""`hangwatch ready`: whether the server that runs with these very settings can do its work.

For health checks of containers and for scripts that restart servers one after the other. It is
started every few seconds, so it imports the standard library alone. Not for asking from elsewhere:
that is `GET /readyz`.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping

from hangwatch_server.settings import ServerSettings

TIMEOUT_S = 4.0  # the server itself gives its database 3 s
MAX_ANSWER_BYTES = 65_536
_ANYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (names, not bound)
_FINE = ("ok", "off")


def run(settings: ServerSettings) -> int:
    """Print what the server says of itself; 0 when it is ready, else 1."""
    try:
        status, answer = _ask(settings)
    except (OSError, http.client.HTTPException) as error:
        print(f"not ready: no answer on port {settings.port}: {error or type(error).__name__}")
        return 1
    print(_words(answer) or f"status {status}")
    return 0 if status == http.HTTPStatus.OK else 1


def _ask(settings: ServerSettings) -> tuple[int, Mapping[str, object]]:
    connection = _connection(settings)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        text = answer.read(MAX_ANSWER_BYTES)
    finally:
        connection.close()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return answer.status, found if isinstance(found, dict) else {}


def _connection(settings: ServerSettings) -> http.client.HTTPConnection:
    host = _ANYWHERE.get(settings.host, settings.host)
    if settings.tls_cert is None:
        return http.client.HTTPConnection(host, settings.port, timeout=TIMEOUT_S)
    # The certificate names the address that others use, and nothing secret is sent or believed.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, settings.port, timeout=TIMEOUT_S, context=context)


def _words(answer: Mapping[str, object]) -> str:
    """The status, then each part that is not fine: `not ready; database: no answer within 3 s`."""
    parts = [
        f"{name}: {value}"
        for name, value in answer.items()
        if name != "status" and isinstance(value, str) and value not in _FINE
    ]
    return "; ".join([str(answer.get("status", "")), *parts]) if answer else ""
