"""The settings that this server runs with, and where each value came from. For administrators."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request

from hangwatch_server import wiring
from hangwatch_server.api import examples, paging
from hangwatch_server.settings import effective
from hangwatch_server.settings.effective import SettingRow

router = APIRouter(prefix="/settings", tags=["administration"], dependencies=[wiring.ADMIN])


@router.get(
    "",
    summary="Every setting with its value, source and meaning; secrets are hidden",
    responses=examples.page(examples.SETTING),
)
async def list_settings(request: Request) -> paging.Page[SettingRow]:
    origins: Mapping[str, str] = request.app.state.origins
    return paging.Page(items=effective.rows(request.app.state.settings, origins))
