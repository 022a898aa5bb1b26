"""Enrolment: an agent exchanges a token that a whole cluster shares for one of its own node.

The stream of agents is no call of this API: see `ingest`.
"""

from __future__ import annotations

from fastapi import APIRouter, Request

from hangwatch_server import logs, security, wiring
from hangwatch_server.api import deps, documents, examples
from hangwatch_server.db import audit

router = APIRouter(prefix="/agent", tags=["agents"])
_log = logs.get()


@router.post(
    "/enrol",
    status_code=201,
    summary="Exchange an enrolment token for the token of one node's agent",
    responses=examples.of(examples.ENROLLED, status=201),
)
@security.for_bound_callers
async def enrol(
    request: Request, house: wiring.House, caller: deps.Enroller, body: documents.Enrolment
) -> documents.NewToken:
    enrolment = await house.tokens.by_id(caller.id.removeprefix("token:"))
    if enrolment is None:
        raise security.UnauthorisedError("the enrolment token was revoked, or has expired just now")
    token, text = await house.tokens.enrol(enrolment, body.node)
    _log.info("node_enrolled", node=body.node, by=caller.name, client=security.address_of(request))
    await audit.record(house.db, caller.name, "node.enrol", f"token:{token.id}", body.node)
    return documents.new_token(token, text)
