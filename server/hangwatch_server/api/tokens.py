"""Tokens: create (the text is shown once), list, revoke. For administrators."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import durations, security, wiring
from hangwatch_server.api import documents, examples, once, paging
from hangwatch_server.db import audit
from hangwatch_server.db import tokens as token_rows
from hangwatch_server.errors import NotFoundError

LONGEST_LIFE_S = 10 * 365 * 86400
router = APIRouter(
    prefix="/tokens",
    tags=["administration"],
    dependencies=[wiring.ADMIN],
    route_class=once.OnceRoute,
)


@router.get("", summary="List tokens, without their texts", responses=examples.page(examples.TOKEN))
async def list_tokens(
    request: Request,
    response: Response,
    house: wiring.House,
    limit: paging.LongLimit = 10_000,
    cursor: paging.Offset = None,
) -> paging.Page[documents.TokenRow]:
    rows = [documents.token_row(row) for row in await token_rows.list_all(house.db)]
    return paging.slice_of(request, response, rows, limit, cursor)


@router.post(
    "",
    status_code=201,
    dependencies=[once.SECRET],
    summary="Create a token; its text is in this answer only",
    responses=examples.of(examples.NEW_TOKEN, status=201),
)
async def create_token(
    house: wiring.House, caller: wiring.Admin, body: documents.TokenRequest
) -> documents.NewToken:
    expires_at = None
    if body.expires_in is not None:
        life_s = durations.seconds(body.expires_in, longest_s=LONGEST_LIFE_S)
        expires_at = datetime.now(UTC) + timedelta(seconds=life_s)
    wanted = security.TokenRequest(
        name=body.name,
        scopes=body.scopes,
        node=body.node,
        expires_at=expires_at,
        jobs=body.jobs,
        nodes=body.nodes,
        uses=body.uses,
        may_replace=body.may_replace,
    )
    token, text = await house.tokens.create(wanted)
    detail = f"{token.name}: {' '.join(token.scopes)}"
    await audit.record(house.db, caller.name, "token.create", f"token:{token.id}", detail)
    return documents.new_token(token, text)


@router.delete("/{token_id}", status_code=204, summary="Revoke a token")
async def revoke_token(
    house: wiring.House,
    caller: wiring.Admin,
    token_id: str,
    with_enrolled: Annotated[
        bool, Query(description="And the tokens that agents came by with it.")
    ] = False,
) -> None:
    if not await house.tokens.revoke(token_id, with_enrolled=with_enrolled):
        raise NotFoundError(
            f"token '{token_id}' is not known or revoked already: see `hangwatch token list`"
        )
    detail = "with those that it enrolled" if with_enrolled else ""
    await audit.record(house.db, caller.name, "token.revoke", f"token:{token_id}", detail)
