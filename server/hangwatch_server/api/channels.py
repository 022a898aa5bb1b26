"""Channels: where alerts go. Secrets are written, and never part of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field, StringConstraints, field_validator

from hangwatch_server import wiring
from hangwatch_server.alerts import channels, directory
from hangwatch_server.alerts.directory import Trial, Wish
from hangwatch_server.api import examples, once, paging
from hangwatch_server.api.documents import Body, Name
from hangwatch_server.api.silences import NewMatcher
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.model.alerts import Channel, ChannelKind, Matcher, Topic
from hangwatch_server.settings.address import url_of

router = APIRouter(
    prefix="/channels", tags=["alerts"], dependencies=[wiring.OPERATE], route_class=once.OnceRoute
)

_Text = Annotated[str, StringConstraints(max_length=2000)]
_Key = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,40}$")]
_Seconds = Annotated[float, Field(ge=0, le=directory.LONGEST_S)]


class SecretFile(Body):
    """A secret that lies in a file on the server."""

    file: Annotated[str, StringConstraints(max_length=100)] = Field(
        description="Its name in the folder of the setting secrets_dir.", examples=["slack-token"]
    )


Secrets = dict[_Key, _Text | SecretFile | None]
Matchers = Annotated[tuple[NewMatcher, ...], Field(max_length=20)]
Topics = Annotated[tuple[Topic, ...], Field(min_length=1, max_length=len(Topic))]


def _known_topics(topics: tuple[Topic, ...] | None) -> tuple[Topic, ...] | None:
    if topics is not None and Topic.TEST in topics:
        raise ValueError("a test is sent by its own call, no channel subscribes to it")
    return None if topics is None else tuple(dict.fromkeys(topics))


class ChannelRequest(Body):
    name: Name = Field(examples=["on-call"])
    kind: ChannelKind
    options: dict[_Key, _Text] = Field(default={}, description="As `GET /channels/kinds` says.")
    secrets: Secrets = Field(
        default={}, description='Name to text, or to `{"file": name}` on the server.'
    )
    topics: Topics = directory.USUAL_TOPICS
    matchers: Matchers = Field(default=(), description="All must match; none matches everything.")
    after_s: _Seconds = Field(
        default=0.0, description="Told only of what nobody acknowledged for so long."
    )
    remind_s: _Seconds = Field(default=0.0, description="Between reminders; 0 for none.")
    is_enabled: bool = True

    _topics = field_validator("topics")(_known_topics)


class ChannelChange(Body):
    """What is not given stays as it is; a secret of null is taken away."""

    name: Name | None = None
    options: dict[_Key, _Text] | None = Field(default=None, description="In place of all before.")
    secrets: Secrets = Field(default={}, description="Those that are not named are kept.")
    topics: Topics | None = None
    matchers: Matchers | None = None
    after_s: _Seconds | None = None
    remind_s: _Seconds | None = None
    is_enabled: bool | None = None

    _topics = field_validator("topics")(_known_topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One thing that a kind of channel asks for."""

    name: str
    label: str
    help: str
    example: str
    is_secret: bool
    is_required: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """A way to reach people or machines."""

    kind: ChannelKind
    label: str
    about: str
    fields: tuple[FieldRow, ...]


@router.get("", summary="List channels, by name", responses=examples.page(examples.CHANNEL))
async def list_channels(house: wiring.House) -> paging.Page[Channel]:
    return paging.Page(items=tuple(await channel_rows.list_all(house.db)))


@router.get(
    "/kinds",
    summary="What each kind of channel asks for",
    responses=examples.of([examples.CHANNEL_KIND]),
)
async def list_kinds() -> tuple[KindRow, ...]:
    return tuple(
        KindRow(
            kind=kind,
            label=found.label,
            about=found.about,
            fields=tuple(_field_row(field) for field in found.fields),
        )
        for kind, found in channels.KINDS.items()
    )


@router.post(
    "",
    status_code=201,
    dependencies=[once.KEY],
    summary="Create a channel",
    responses=examples.of(examples.CHANNEL, status=201),
)
async def create_channel(
    house: wiring.House, caller: wiring.Admin, body: ChannelRequest
) -> Channel:
    wish = Wish(
        name=body.name,
        kind=body.kind,
        options=body.options,
        secrets=_stored(body.secrets),
        topics=body.topics,
        matchers=_matchers(body.matchers),
        after_s=body.after_s,
        remind_s=body.remind_s,
        is_enabled=body.is_enabled,
    )
    return await directory.create(house.db, house.settings.secrets_dir, wish, caller.name)


@router.get("/{channel_id}", summary="One channel", responses=examples.of(examples.CHANNEL))
async def channel(house: wiring.House, channel_id: str) -> Channel:
    return await directory.find(house.db, channel_id)


@router.patch(
    "/{channel_id}",
    summary="Change what is given; secrets that are not named are kept",
    responses=examples.of(examples.CHANNEL),
)
async def change_channel(
    house: wiring.House, caller: wiring.Admin, channel_id: str, body: ChannelChange
) -> Channel:
    wish = _changed(await directory.find(house.db, channel_id), body)
    folder = house.settings.secrets_dir
    return await directory.change(house.db, folder, channel_id, wish, caller.name)


@router.delete("/{channel_id}", status_code=204, summary="Delete a channel with its delivery log")
async def delete_channel(house: wiring.House, caller: wiring.Admin, channel_id: str) -> None:
    await directory.delete(house.db, channel_id, caller.name)


@router.post(
    "/{channel_id}/test",
    dependencies=[once.KEY],
    summary="Send one test message now; 200 also where it was not accepted",
    responses=examples.of(examples.CHANNEL_TRIAL),
)
async def test_channel(house: wiring.House, caller: wiring.Admin, channel_id: str) -> Trial:
    found = await directory.find(house.db, channel_id)
    url = url_of(house.settings)
    return await directory.test(house.db, house.senders, found, url, caller.name)


def _changed(before: Channel, body: ChannelChange) -> Wish:
    wish = Wish(
        name=before.name,
        kind=before.kind,
        options=before.options,
        secrets=_stored(body.secrets),
        topics=before.topics,
        matchers=before.matchers,
        after_s=before.after_s,
        remind_s=before.remind_s,
        is_enabled=before.is_enabled,
    )
    given = {
        name: value
        for name in ("name", "options", "topics", "after_s", "remind_s", "is_enabled")
        if (value := getattr(body, name)) is not None
    }
    if body.matchers is not None:
        given["matchers"] = _matchers(body.matchers)
    return replace(wish, **given)


def _stored(
    given: Mapping[str, str | SecretFile | None],
) -> dict[str, Mapping[str, str] | None]:
    return {name: _entry(secret) for name, secret in given.items()}


def _entry(secret: str | SecretFile | None) -> Mapping[str, str] | None:
    if isinstance(secret, SecretFile):
        return {"file": secret.file}
    return {"value": secret.strip()} if secret and secret.strip() else None


def _matchers(bodies: tuple[NewMatcher, ...]) -> tuple[Matcher, ...]:
    return tuple(Matcher(field=body.field, pattern=body.pattern) for body in bodies)


def _field_row(field: channels.Field) -> FieldRow:
    return FieldRow(
        name=field.name,
        label=field.label,
        help=field.help,
        example=field.example,
        is_secret=field.is_secret,
        is_required=field.is_required,
        choices=field.choices,
    )
