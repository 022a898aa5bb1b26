"""Styles and scripts: kept for good under their address, packed for those who take it so."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from hangwatch_server.pages import static_files

SCRIPT = "export const word = 'hello';\n" * 50


@pytest.fixture
def visitor(tmp_path: Path) -> TestClient:
    (tmp_path / "js").mkdir()
    (tmp_path / "js/main.js").write_text(SCRIPT)
    app = FastAPI()
    app.mount("/files", static_files.KeptFiles(tmp_path))
    return TestClient(app)


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip, br", "gzip"), ("identity", None)])
def test_a_file_comes_as_the_browser_takes_it_and_may_be_kept(
    visitor: TestClient, accepted: str, encoding: str | None
) -> None:
    found = visitor.get("/files/js/main.js", headers={"accept-encoding": accepted})

    assert found.text == SCRIPT
    assert found.headers.get("content-encoding") == encoding
    assert found.headers["content-type"].startswith("text/javascript")
    assert found.headers["cache-control"] == static_files.FOR_GOOD
    assert found.headers["vary"] == "accept-encoding"


def test_packed_files_are_much_smaller(visitor: TestClient) -> None:
    found = visitor.get("/files/js/main.js", headers={"accept-encoding": "gzip"})

    assert int(found.headers["content-length"]) < len(gzip.compress(SCRIPT.encode())) + 40


@pytest.mark.parametrize("path", ["js/other.js", "../pyproject.toml", "js/%2e%2e/%2e%2e/x", "js"])
def test_what_is_not_in_the_folder_is_not_found(visitor: TestClient, path: str) -> None:
    assert visitor.get(f"/files/{path}").status_code == 404


def test_a_file_is_not_written_to(visitor: TestClient) -> None:
    assert visitor.post("/files/js/main.js").status_code == 405


def test_head_says_what_there_is_without_sending_it(visitor: TestClient) -> None:
    found = visitor.head("/files/js/main.js")

    assert found.status_code == 200
    assert found.content == b""
