"""The form of a channel: what it shows of one, and what its fields ask for. No requests here."""

from __future__ import annotations

import base64
import secrets as random_keys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.datastructures import FormData

from hangwatch_server.alerts import channels, directory
from hangwatch_server.alerts.channels import BadChannelError
from hangwatch_server.alerts.channels.fields import KEY_PREFIX
from hangwatch_server.alerts.directory import Wish
from hangwatch_server.model.alerts import Channel, ChannelKind, Matcher, MatchField, Topic

MINUTE_S = 60
KEY_BYTES = 24
MAX_NAME_CHARS, MAX_PATTERN_CHARS = 100, 200
SPARE_MATCHERS = 2  # empty rows for more
MAX_MATCHERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What stands in the form, right or not, but for its secrets: those are never shown again."""

    kind: ChannelKind
    name: str = ""
    options: Mapping[str, str]
    secret_names: tuple[str, ...] = ()  # that are set
    topics: tuple[Topic, ...] = directory.USUAL_TOPICS
    matchers: tuple[tuple[str, str], ...] = ()
    after: str = ""  # minutes, as typed
    remind: str = "30"
    is_enabled: bool = True

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The matchers, and room for more."""
        return with_spare(self.matchers)


def with_spare(matchers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Those that are given, and empty rows: of the fields that none of them looks at, if any."""
    used = {field for field, _ in matchers}
    free = [field.value for field in MatchField if field.value not in used]
    more = [*free, *(field.value for field in MatchField)][:SPARE_MATCHERS]
    return (*matchers, *((field, "") for field in more))


def new(kind: ChannelKind) -> Draft:
    return Draft(kind=kind, options={})


def of_channel(channel: Channel) -> Draft:
    return Draft(
        kind=channel.kind,
        name=channel.name,
        options=channel.options,
        secret_names=channel.secret_names,
        topics=channel.topics,
        matchers=tuple((matcher.field.value, matcher.pattern) for matcher in channel.matchers),
        after=_minutes_text(channel.after_s),
        remind=_minutes_text(channel.remind_s),
        is_enabled=channel.is_enabled,
    )


def fresh_key() -> str:
    """A signing key that nobody has yet."""
    return KEY_PREFIX + base64.b64encode(random_keys.token_bytes(KEY_BYTES)).decode()


def read(form: FormData, before: Draft) -> Draft:
    """What was typed, to be shown again where it cannot be kept."""
    fields = channels.KINDS[before.kind].fields
    return Draft(
        kind=before.kind,
        name=_text(form, "name"),
        options={
            field.name: _text(form, f"option-{field.name}")
            for field in fields
            if not field.is_secret
        },
        secret_names=before.secret_names,
        topics=tuple(topic for topic in directory.TOPICS if topic.value in form.getlist("topics")),
        matchers=read_matchers(form),
        after=_text(form, "after"),
        remind=_text(form, "remind"),
        is_enabled="is_enabled" in form,
    )


def read_matchers(form: FormData) -> tuple[tuple[str, str], ...]:
    """Field and pattern of each row that has a pattern."""
    rows = zip(form.getlist("match-field"), form.getlist("match-pattern"), strict=False)
    given = [(str(field), str(pattern).strip()) for field, pattern in rows]
    return tuple((field, pattern) for field, pattern in given if pattern)


def matchers_of(rows: Sequence[tuple[str, str]]) -> tuple[Matcher, ...]:
    """Raise BadChannelError for a row that cannot be one."""
    if len(rows) > MAX_MATCHERS:
        raise BadChannelError(f"there can be {MAX_MATCHERS} matchers at most")
    found = []
    for field, pattern in rows:
        if field not in set(MatchField) or len(pattern) > MAX_PATTERN_CHARS or "\0" in pattern:
            raise BadChannelError(f"a matcher is a field and at most {MAX_PATTERN_CHARS} letters")
        found.append(Matcher(field=MatchField(field), pattern=pattern))
    return tuple(found)


def wish(draft: Draft, form: FormData) -> Wish:
    """The channel that the form asks for; raise BadChannelError for what cannot be read."""
    if not 0 < len(draft.name) <= MAX_NAME_CHARS or not draft.name.isprintable():
        raise BadChannelError(f"a channel has a name of at most {MAX_NAME_CHARS} letters")
    return Wish(
        name=draft.name,
        kind=draft.kind,
        options=draft.options,
        secrets=_secrets(form, draft.kind),
        topics=draft.topics,
        matchers=matchers_of(draft.matchers),
        after_s=_seconds(draft.after, "the time until an escalation"),
        remind_s=_seconds(draft.remind, "the time between reminders"),
        is_enabled=draft.is_enabled,
    )


def _secrets(form: FormData, kind: ChannelKind) -> dict[str, Mapping[str, str] | None]:
    """Only what was typed: an empty field keeps the secret that is there."""
    found: dict[str, Mapping[str, str] | None] = {}
    for field in channels.KINDS[kind].fields:
        if not field.is_secret:
            continue
        value, file = _text(form, f"secret-{field.name}"), _text(form, f"file-{field.name}")
        if file:
            found[field.name] = {"file": file}
        elif value:
            found[field.name] = {"value": value}
        elif f"forget-{field.name}" in form:
            found[field.name] = None
    return found


def _seconds(minutes: str, what: str) -> float:
    try:
        found_s = float(minutes or 0) * MINUTE_S
    except ValueError:
        raise BadChannelError(f"{what} is a number of minutes") from None
    if not 0 <= found_s <= directory.LONGEST_S:
        raise BadChannelError(
            f"{what} is between 0 and {directory.LONGEST_S / MINUTE_S:.0f} minutes"
        )
    return found_s


def _minutes_text(duration_s: float) -> str:
    return f"{duration_s / MINUTE_S:g}" if duration_s else ""


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""
