"""Browser sessions: who is signed in now, and ending a session. For administrators."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server import security, wiring
from hangwatch_server.api import documents, examples, paging
from hangwatch_server.db import audit
from hangwatch_server.db import sessions as session_rows
from hangwatch_server.errors import NotFoundError

router = APIRouter(prefix="/sessions", tags=["administration"], dependencies=[wiring.ADMIN])


@router.get(
    "",
    summary="Who is signed in now, newest first",
    responses=examples.page(examples.SESSION),
)
async def list_sessions(
    request: Request,
    response: Response,
    house: wiring.House,
    limit: paging.Limit = 100,
    cursor: paging.Cursor = None,
) -> paging.Page[documents.SessionRow]:
    rows, after = await session_rows.list_page(house.db, limit=limit, before=cursor)
    shown = [documents.session_row(row) for row in rows]
    return paging.page(request, response, shown, after)


@router.delete("/{session_id}", status_code=204, summary="End a session: its cookie is worthless")
async def end_session(
    request: Request, house: wiring.House, caller: wiring.Admin, session_id: str
) -> None:
    keeper: security.Sessions = request.app.state.sessions
    ended = await keeper.end(session_id)
    if ended is None:
        raise NotFoundError(f"session '{session_id}' is not known, or over already")
    await audit.record(house.db, caller.name, "session.end", f"session:{session_id}", ended.who)
