"""Styles and scripts: kept for good under their address, packed for those who take it so."""

from __future__ import annotations

import gzip
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from hangwatch_server.pages import static_files

pytestmark = pytest.mark.anyio

SCRIPT = "export const word = 'hello';\n" * 50


@pytest.fixture
def visitor(tmp_path: Path) -> httpx.AsyncClient:
    (tmp_path / "js").mkdir()
    (tmp_path / "js/main.js").write_text(SCRIPT)
    app = FastAPI()
    app.mount("/files", static_files.KeptFiles(tmp_path))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip, br", "gzip"), ("identity", None)])
async def test_a_file_comes_as_the_browser_takes_it_and_may_be_kept(
    visitor: httpx.AsyncClient, accepted: str, encoding: str | None
) -> None:
    found = await visitor.get("/files/js/main.js", headers={"accept-encoding": accepted})

    assert found.text == SCRIPT
    assert found.headers.get("content-encoding") == encoding
    assert found.headers["content-type"].startswith("text/javascript")
    assert found.headers["cache-control"] == static_files.FOR_GOOD
    assert found.headers["vary"] == "accept-encoding"


async def test_packed_files_are_much_smaller(visitor: httpx.AsyncClient) -> None:
    found = await visitor.get("/files/js/main.js", headers={"accept-encoding": "gzip"})

    assert int(found.headers["content-length"]) < len(gzip.compress(SCRIPT.encode())) + 40


@pytest.mark.parametrize("path", ["js/other.js", "../pyproject.toml", "js/%2e%2e/%2e%2e/x", "js"])
async def test_what_is_not_in_the_folder_is_not_found(
    visitor: httpx.AsyncClient, path: str
) -> None:
    assert (await visitor.get(f"/files/{path}")).status_code == 404


async def test_a_file_is_not_written_to(visitor: httpx.AsyncClient) -> None:
    assert (await visitor.post("/files/js/main.js")).status_code == 405


async def test_head_says_what_there_is_without_sending_it(visitor: httpx.AsyncClient) -> None:
    found = await visitor.head("/files/js/main.js")

    assert found.status_code == 200
    assert found.content == b""
