"""Nodes: their agents, ranks and incident counts."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server import model
from hangwatch_server.api import deps, examples, paging

router = APIRouter(prefix="/nodes", tags=["nodes"], dependencies=[deps.READ])


@router.get("", summary="List nodes by name", responses=examples.page(examples.NODE))
async def list_nodes(
    request: Request,
    response: Response,
    house: deps.House,
    limit: paging.LongLimit = 5_000,
    cursor: paging.Offset = None,
) -> paging.Page[model.NodeRow]:
    return paging.slice_of(request, response, await house.watch.nodes(), limit, cursor)


@router.get("/{name:path}", summary="One node", responses=examples.of(examples.NODE))
async def node(house: deps.House, name: str) -> model.NodeRow:
    return await house.watch.node(name)
