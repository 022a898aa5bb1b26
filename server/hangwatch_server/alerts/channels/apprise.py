"""Other services by the library Apprise: Teams, Discord, Google Chat, Opsgenie, mail and more.

The library does its own requests, so the guard of ours cannot see where each one connects. Hence
only services that the operator has listed are spoken to; of those that take any host, the host is
checked before, and no redirect is followed. What would make the library read files of the server is
not let through, and what a job wrote can neither be markup nor call anybody.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple
from urllib.parse import unquote

from hangwatch_server import texts
from hangwatch_server.alerts.channels import apprise_requests
from hangwatch_server.alerts.channels.base import Accepted, Kind, Outcome, Refused, TryAgain
from hangwatch_server.alerts.channels.fields import BadChannelError, Field
from hangwatch_server.alerts.guard import Guard, NoSuchNameError, NotAllowedError
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import Message, Topic

TIMEOUT_S = 45.0  # a mail server answers many questions, each within the library's own 15 s
LOOK_UP_S = 15.0  # of its host, and for the first time to load the library
MAX_TITLE_CHARS, MAX_BODY_CHARS = 250, 8000
HTTPS_PORT = 443
# Services whose requests go to hosts that the library knows; every other one's host is checked.
FIXED_HOSTS = frozenset(
    {"discord", "gchat", "msteams", "opsgenie", "pover", "sns", "tgram", "twilio", "wxteams"}
)
# Others name files of the server (`template`, `pgpkey`), or switch off what keeps a request safe.
PARAMETERS = frozenset(
    {
        *("to", "from", "cc", "bcc", "reply", "name", "user", "pass", "smtp", "mode", "format"),
        *("api-version", "sp", "sv", "sig", "ver", "thread", "threadkey", "topic", "priority"),
        *("sound", "silent", "preview", "token", "apikey", "region", "tags", "entity", "alias"),
    }
)
# As the library splits an address: by `;` as well, and `#` ends nothing.
_SPLIT = re.compile(r"[&;?#]")
# Whatever the service reads, HTML, Markdown or its own: no tags, no links, nobody called.
_HARMLESS = str.maketrans({"<": "\u2039", ">": "\u203a"})
_CALLS = re.compile(r"@(?=everyone|here|all|channel)", re.IGNORECASE)
T = TypeVar("T")
Given = TypeVarTuple("Given")
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="apprise")
_TYPES = {
    Topic.OPENED: "failure",
    Topic.REMINDER: "failure",
    Topic.BLIND: "warning",
    Topic.SLOW: "warning",
    Topic.RESOLVED: "success",
    Topic.SIGHTED: "success",
}


def _has_scheme(value: str) -> None:
    if "://" not in value:
        raise BadChannelError(
            "is not an address of Apprise: write it as discord://… or mailtos://…"
        )


FIELDS = (
    Field(
        name="url",
        label="Apprise address",
        help="as the library's pages say for each service: github.com/caronc/apprise",
        example="mailtos://user:password@example.org?to=oncall@example.org",
        is_secret=True,
        is_required=True,
        check=_has_scheme,
    ),
)


class Apprise:
    """Hands the message to the library, in a thread of its own."""

    def __init__(self, url: str, services: frozenset[str], guard: Guard, proxy: str) -> None:
        self._url, self._services, self._guard, self._proxy = url, services, guard, proxy

    async def send(self, message: Message, thread: str) -> Outcome:
        if importlib.util.find_spec("apprise") is None:
            return TryAgain(
                error="the library Apprise is not installed here: "
                "pip install 'hangwatch[apprise]' and restart the server"
            )
        try:
            # In a thread as well: the first time it imports a hundred plugins.
            service = await _in_thread(service_of, self._url, self._services)
            apprise_requests.without_environment(service, self._proxy)
            await self._check_host(service)
        except BadChannelError as error:
            return Refused(error=str(error))
        except (NotAllowedError, NoSuchNameError) as error:
            return TryAgain(error=str(error))
        return await _notify(service, message)

    async def _check_host(self, service: Any) -> None:  # Any: a plugin of the library
        if schemes_of(service) & FIXED_HOSTS:
            return
        host = getattr(service, "smtp_host", "") or service.host or ""
        await self._guard.addresses(str(host), int(service.port or HTTPS_PORT))


def service_of(url: str, allowed: frozenset[str]) -> Any:  # Any: a plugin of the library
    """The library's object for the address; BadChannelError for one that may not be used."""
    import apprise

    scheme = url.partition("://")[0].lower()
    if scheme not in allowed and scheme != "https":  # by https come addresses as services give them
        raise BadChannelError(_not_listed(scheme, allowed))
    for name in parameters(url):
        if name.lower() not in PARAMETERS:
            raise BadChannelError(
                f"the Apprise address has the parameter '{name[:40]}', which is not let through: "
                f"it may have {', '.join(sorted(PARAMETERS))}"
            )
    asset = apprise.AppriseAsset(http_redirects=False, allow_templates=False)
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        raise BadChannelError(
            f"Apprise cannot read the address as one of {scheme}: compare it with the library's "
            "page of that service"
        )
    if not schemes_of(service) & allowed:
        raise BadChannelError(_not_listed(", ".join(sorted(schemes_of(service))), allowed))
    return service


def parameters(url: str) -> list[str]:
    """Names of all that could be a parameter to the library, which reads addresses its own way."""
    _, _, query = url.partition("?")
    return [unquote(pair.partition("=")[0]).strip() for pair in _SPLIT.split(query) if pair]


def schemes_of(service: Any) -> frozenset[str]:  # Any: a plugin of the library
    """All first words by which its addresses may begin."""
    found: set[str] = set()
    for given in (service.protocol, service.secure_protocol):
        found |= {given} if isinstance(given, str) else set(given or ())
    return frozenset(found)


async def _in_thread(work: Callable[[*Given], T], *given: *Given) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads, work, *given)


async def _notify(service: Any, message: Message) -> Outcome:  # Any: a plugin of the library
    try:
        async with asyncio.timeout(TIMEOUT_S):
            error = await _in_thread(_send, service, message)
    except TimeoutError:
        return TryAgain(error=f"the service gave no answer within {TIMEOUT_S:.0f} s")
    return TryAgain(error=error) if error else Accepted()


def _send(service: Any, message: Message) -> str:  # Any: a plugin of the library
    """In a thread: "" when it was taken, else what the library says of it."""
    body = f"{harmless(message.text, MAX_BODY_CHARS)}\n\n{message.url}".strip()
    told = _Told()
    logger = logging.getLogger("apprise")
    logger.addHandler(told)
    try:
        is_taken = service.notify(
            title=harmless(message.title, MAX_TITLE_CHARS),
            body=body,
            body_format=body_format(service),
            notify_type=_TYPES.get(message.topic, "info"),
        )
    except Exception as error:
        # The boundary of a foreign library with a hundred plugins: a defect of one is a failure
        # to send, told like any other.
        return f"Apprise failed with {type(error).__name__}"
    finally:
        logger.removeHandler(told)
    return "" if is_taken else told.words()


def body_format(service: Any) -> str | None:  # Any: a plugin of the library
    """`text` where the library then sends text, or escapes it for HTML.

    For services of Markdown alone it would escape underscores too, in addresses and names.
    """
    declared = service.notify_format
    formats = declared if isinstance(declared, tuple) else (declared,)
    return "text" if {"text", "html"} & {str(one.value) for one in formats} else None


def harmless(text: str, limit: int) -> str:
    kept = texts.plain(text).translate(_HARMLESS).replace("](", "] (")
    return texts.short(_CALLS.sub("@\u200b", kept), limit)  # a space of no width


class _Told(logging.Handler):
    """What the library logs in this thread: it tells the reason of a failure nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread, self._lines = threading.get_ident(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and len(self._lines) < 3:
            self._lines.append(" ".join(record.getMessage().split()))

    def words(self) -> str:
        said = texts.short("; ".join(self._lines), 300)
        return f"the service did not take it: {said}" if said else "the service did not take it"


def _not_listed(scheme: str, allowed: frozenset[str]) -> str:
    return (
        f"'{scheme[:40]}' is not among the services that this server speaks to by Apprise "
        f"({', '.join(sorted(allowed)) or 'none'}): an administrator of the server adds it to the "
        "setting apprise_schemes"
    )


def _make(options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing) -> Apprise:
    return Apprise(secrets["url"], outgoing.services, outgoing.guard, outgoing.proxy)


KIND = Kind(
    label="Apprise: Teams, Discord, mail, …",
    about="Plain text to one of the services that the library Apprise knows.",
    fields=FIELDS,
    make=_make,
    target=lambda options, secrets: secrets.get("url", "").partition("://")[0][:40],
    takes_s=TIMEOUT_S + LOOK_UP_S,
)
