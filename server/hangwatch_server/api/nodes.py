"""Nodes: their agents, ranks and incident counts."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server import model, wiring
from hangwatch_server.api import examples, paging, plain

router = APIRouter(prefix="/nodes", tags=["nodes"], dependencies=[wiring.READ])


@router.get(
    "",
    response_model=paging.Page[model.NodeRow],
    summary="List nodes by name",
    responses=examples.also_plain(examples.page(examples.NODE), "node-b\tlive\t4\tprobe\t1\n"),
)
async def list_nodes(
    request: Request,
    response: Response,
    house: wiring.House,
    limit: paging.LongLimit = 5_000,
    cursor: paging.Offset = None,
    format: plain.Lines = plain.Format.JSON,
) -> paging.Page[model.NodeRow] | Response:
    """As text: name, link, ranks, depth, incidents in 30 days."""
    page = paging.slice_of(request, response, await house.watch.nodes(), limit, cursor)
    return plain.rows(map(_row, page.items), response) if format is plain.Format.PLAIN else page


def _row(node: model.NodeRow) -> tuple[object, ...]:
    return node.name, node.link, node.ranks, node.depth, node.incidents_30d


@router.get("/{name:path}", summary="One node", responses=examples.of(examples.NODE))
async def node(house: wiring.House, name: str) -> model.NodeRow:
    return await house.watch.node(name)
