"""Settings of who may get in, and how: TLS, proxies, sign-in by others, and limits on trying.

Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hangwatch_server.settings.detection import setting


@dataclass(frozen=True, kw_only=True)
class AccessSettings:
    """Everything about the door."""

    tls_cert: Path | None = field(
        default=None,
        metadata=setting(
            "PEM file with the server's certificate and its chain; read again on SIGHUP",
            "empty: no TLS here, as behind a proxy that has it, or on one machine",
        ),
    )
    tls_key: Path | None = field(
        default=None,
        metadata=setting("PEM file with the certificate's key", "empty: it is in the same file"),
    )
    trusted_proxies: str = field(
        default="",
        metadata=setting(
            "addresses or networks of proxies whose X-Forwarded-For and -Proto are believed",
            "empty: nobody's, since anybody can send these headers",
        ),
    )
    proxy_user_header: str = field(
        default="",
        metadata=setting(
            "header in which a trusted proxy names the person whom it has signed in",
            "empty: no proxy signs anybody in",
        ),
    )
    proxy_groups_header: str = field(
        default="",
        metadata=setting(
            "header in which that proxy lists the person's groups, with commas",
            "empty: only the rules of --roles for everybody (*) apply",
        ),
    )
    roles: str = field(
        default="",
        metadata=setting(
            "which groups have which role, as in 'admin=sre; operator=oncall; viewer=*'",
            "empty: nobody gets in by OIDC or a proxy before you say who may",
        ),
    )
    oidc_issuer: str = field(
        default="",
        metadata=setting(
            "address of an OpenID Connect provider that signs people in",
            "empty: people sign in with tokens; needs pip install 'hangwatch[oidc]'",
        ),
    )
    oidc_client_id: str = field(
        default="",
        metadata=setting("the id that the provider knows this server by", "the provider gives it"),
    )
    oidc_client_secret: str = field(
        default="",
        metadata=setting(
            "the secret that goes with the client id",
            "empty: a public client, which PKCE alone protects",
            secret=True,
        ),
    )
    oidc_scopes: str = field(
        default="openid email profile",
        metadata=setting(
            "scopes asked of the provider", "name and address; some providers want one for groups"
        ),
    )
    oidc_name_claim: str = field(
        default="email",
        metadata=setting(
            "claim that names the person on pages and in the audit trail",
            "what people know each other by; `sub` is used where it is missing",
        ),
    )
    oidc_groups_claim: str = field(
        default="groups",
        metadata=setting("claim that lists the person's groups", "what most providers call it"),
    )
    session_hours: float = field(
        default=12.0,
        metadata=setting("hours until a browser session ends", "a working day, with a night shift"),
    )
    failures_per_minute: float = field(
        default=20.0,
        metadata=setting(
            "wrong tokens that one address is answered a minute; 0 for any number",
            "more than a person mistypes; good tokens from there are never refused",
        ),
    )
    captures_per_minute: float = field(
        default=30.0,
        metadata=setting(
            "captures that one caller may ask for in a minute; 0 for any number",
            "each makes every rank of a job stop for a moment; detection's own do not count",
        ),
    )
