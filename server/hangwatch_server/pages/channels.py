"""Channels: where alerts go. Operators see them, administrators make, try and change them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from hangwatch_server import wiring
from hangwatch_server.alerts import channels, directory
from hangwatch_server.alerts.channels import BadChannelError
from hangwatch_server.alerts.directory import Trial
from hangwatch_server.alerts.secret_files import SecretError
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db import deliveries as delivery_rows
from hangwatch_server.errors import ConflictError
from hangwatch_server.model.alerts import Channel, ChannelKind
from hangwatch_server.pages import alert_words, channel_form, render, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.pages.channel_form import Draft
from hangwatch_server.services import Services
from hangwatch_server.settings.address import url_of

router = APIRouter(route_class=PageRoute, dependencies=[wiring.OPERATE])


async def _form(request: Request) -> FormData:
    return await request.form()


Form = Annotated[FormData, Depends(_form)]
Kind = Annotated[ChannelKind, Query()]


@router.get("/channels")
async def list_channels(request: Request, house: wiring.House) -> Response:
    values = {
        **_frame("Channels"),
        "channels": await channel_rows.list_all(house.db),
        "newest": await delivery_rows.newest_of_channels(house.db),
        "kinds": channels.KINDS,
        "alert_words": alert_words,
    }
    return render.page(request, "channels", values)


@router.get("/channels/new", dependencies=[wiring.ADMIN])
async def new_channel(request: Request, house: wiring.House, kind: Kind) -> Response:
    return _page(request, house, channel_form.new(kind))


@router.post("/channels/new")
async def create_channel(
    request: Request, house: wiring.House, caller: wiring.Admin, kind: Kind, form: Form
) -> Response:
    draft = channel_form.read(form, channel_form.new(kind))
    try:
        wish = channel_form.wish(draft, form)
        made = await directory.create(house.db, house.settings.secrets_dir, wish, caller.name)
    except (BadChannelError, SecretError, ConflictError) as error:
        return _page(request, house, draft, problem=str(error))
    return RedirectResponse(f"/channels/{made.id}", status_code=303)


@router.get("/channels/{channel_id}", dependencies=[wiring.ADMIN])
async def channel(request: Request, house: wiring.House, channel_id: str) -> Response:
    found = await directory.find(house.db, channel_id)
    return _page(request, house, channel_form.of_channel(found), found)


@router.post("/channels/{channel_id}")
async def change_channel(
    request: Request, house: wiring.House, caller: wiring.Admin, channel_id: str, form: Form
) -> Response:
    found = await directory.find(house.db, channel_id)
    draft = channel_form.read(form, channel_form.of_channel(found))
    folder = house.settings.secrets_dir
    try:
        wish = channel_form.wish(draft, form)
        await directory.change(house.db, folder, channel_id, wish, caller.name)
    except (BadChannelError, SecretError, ConflictError) as error:
        return _page(request, house, draft, found, problem=str(error))
    return RedirectResponse(f"/channels#channel-{channel_id}", status_code=303)


@router.post("/channels/{channel_id}/test")
async def test_channel(
    request: Request, house: wiring.House, caller: wiring.Admin, channel_id: str
) -> Response:
    """The outcome alone for a script, else the channel's page with it."""
    found = await directory.find(house.db, channel_id)
    url = url_of(house.settings)
    trial = await directory.test(house.db, house.senders, found, url, caller.name)
    if "hx-request" in request.headers:
        return render.part(request, "channel_trial", {"trial": trial})
    return _page(request, house, channel_form.of_channel(found), found, trial=trial)


@router.get("/channels/{channel_id}/delete", dependencies=[wiring.ADMIN])
async def ask_delete(request: Request, house: wiring.House, channel_id: str) -> Response:
    found = await directory.find(house.db, channel_id)
    return render.page(request, "channel_delete", {**_frame("Delete a channel"), "channel": found})


@router.post("/channels/{channel_id}/delete")
async def delete_channel(house: wiring.House, caller: wiring.Admin, channel_id: str) -> Response:
    await directory.delete(house.db, channel_id, caller.name)
    return RedirectResponse("/channels", status_code=303)


def _page(
    request: Request,
    house: Services,
    draft: Draft,
    channel: Channel | None = None,
    *,
    problem: str = "",
    trial: Trial | None = None,
) -> Response:
    values = {
        **_frame(_tab_name(channel) if channel is not None else "New channel"),
        "channel": channel,
        "draft": draft,
        "kind": channels.KINDS[draft.kind],
        "fresh_key": channel_form.fresh_key(),
        "topics": directory.TOPICS,
        "alert_words": alert_words,
        "secrets_dir": house.settings.secrets_dir,
        "problem": problem,
        "trial": trial,
    }
    return render.page(request, "channel", values, status=422 if problem else 200)


def _tab_name(channel: Channel) -> str:
    return words.plain(words.short(channel.name, 48))


def _frame(title: str) -> render.Values:
    return {"title": f"{title} · Hangwatch", "section": "alerts", "tab": "channels"}
