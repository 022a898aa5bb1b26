"""A streamed response that holds a place for as long as it is sent, however it ends."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from contextlib import AbstractContextManager

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class HeldResponse(StreamingResponse):
    """Taking the place may raise TooManyError: then nothing has been sent, and 429 is answered."""

    def __init__(
        self,
        place: AbstractContextManager[None],
        content: AsyncIterable[str] | AsyncIterable[bytes],
        *,
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)
