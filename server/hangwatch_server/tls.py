"""TLS of the server's own: a certificate and its key, read at the start and again when asked to."""

from __future__ import annotations

import ssl

from hangwatch_server import logs
from hangwatch_server.errors import HangwatchError
from hangwatch_server.settings import ServerSettings

_log = logs.get()


class CertificateError(HangwatchError):
    """The certificate or its key cannot be used."""


def context(settings: ServerSettings) -> ssl.SSLContext | None:
    """TLS 1.2 and later with Python's own choice of ciphers; None without a certificate."""
    if settings.tls_cert is None:
        if settings.tls_key is not None:
            raise CertificateError("--tls-key needs the certificate that it belongs to: --tls-cert")
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _load(made, settings)
    return made


def reload(made: ssl.SSLContext, settings: ServerSettings) -> None:
    """Take a renewed certificate for new connections; one that cannot be used is left alone."""
    try:
        # A key that does not fit leaves a context without one: tried on another first.
        context(settings)
        _load(made, settings)
    except CertificateError as error:
        _log.error("certificate_not_renewed", why=str(error))
        return
    _log.info("certificate_renewed", file=str(settings.tls_cert))


def _load(made: ssl.SSLContext, settings: ServerSettings) -> None:
    try:
        made.load_cert_chain(str(settings.tls_cert), settings.tls_key and str(settings.tls_key))
    except ssl.SSLError as error:
        raise CertificateError(
            f"--tls-cert {settings.tls_cert} and its key cannot be used ({error.reason or error}): "
            "both are PEM, the certificate first and its chain after it, the key without a "
            "passphrase"
        ) from error
    except OSError as error:
        raise CertificateError(
            f"--tls-cert {settings.tls_cert} or its key cannot be read: {error.strerror}"
        ) from error
