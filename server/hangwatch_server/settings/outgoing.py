"""What alerts need to know of this site: where they may go, and where their secrets lie.

Standard library only, as all settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hangwatch_server.settings.detection import setting


@dataclass(frozen=True, kw_only=True)
class OutgoingSettings:
    """Where alerts may go; which channels there are is in the database."""

    secrets_dir: Path = field(
        default=Path("/etc/hangwatch/secrets"),
        metadata=setting(
            "folder of files that hold channels' secrets, each named by its file alone",
            "where orchestrators and configuration tools mount secrets of a service",
        ),
    )
    outgoing_allow: str = field(
        default="",
        metadata=setting(
            "host names and networks inside your own network that alerts may go to, with commas: "
            "alertmanager.internal, 10.20.0.0/16",
            "empty: public addresses only, so that nobody can make the server call its neighbours",
        ),
    )
    outgoing_proxy: str = field(
        default="",
        metadata=setting(
            "HTTP proxy that alerts go through, http://user:password@host:port",
            "empty: none, whatever the environment says, since a proxy decides where names lead",
            secret=True,
        ),
    )
    apprise_schemes: str = field(
        default=(
            "discord,gchat,mailto,mailtos,msteams,opsgenie,pover,sns,tgram,twilio,workflows,wxteams"
        ),
        metadata=setting(
            "services that a channel of kind apprise may use, by the first word of their address",
            "services on fixed hosts, and mail; others take any address, which is not checked",
        ),
    )
