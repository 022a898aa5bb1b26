"""Diagnosis of files alone: recorder dumps, NCCL RAS, py-spy output. Nothing is stored."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server import offline, security, uploads, wiring
from hangwatch_server.api import examples

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string", "format": "binary"},
                            "description": "The number in a file's name is its rank.",
                        }
                    },
                }
            }
        },
    }
}
router = APIRouter(tags=["diagnose"])


@router.post(
    "/diagnose",
    summary="Who holds a job up, by files alone; nothing is stored, nothing is unpickled",
    responses=examples.of(examples.REPORT),
    openapi_extra=_FORM,
    dependencies=[uploads.TURN],
)
@security.form_read_by(uploads.form)
@security.for_bound_callers
async def diagnose(request: Request, caller: wiring.Reader) -> Response:
    report = await uploads.report(request, caller)
    return Response(offline.document(report), media_type="application/json")
