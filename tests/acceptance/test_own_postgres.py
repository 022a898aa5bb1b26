"""The server on an operator's own Postgres instead of the embedded one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import commands, stock_postgres
from tests.support.waiting import until

from hangwatch_server.demo import cases, judge
from hangwatch_server.demo.cases import Case
from hangwatch_server.demo.main import find_verdict
from hangwatch_server.demo.stage import Stage


@pytest.fixture(scope="module")
def database_url() -> Iterator[str]:
    with stock_postgres.running() as url:
        yield url


def test_wrong_password_is_said_without_showing_it(database_url: str, tmp_path: Path) -> None:
    url = database_url.replace(stock_postgres.PASSWORD, "n0t-it")

    done = commands.hangwatch(
        "serve", "--port", "0", "--data-dir", str(tmp_path), HANGWATCH_DATABASE_URL=url
    )

    commands.assert_refused(done, "password authentication failed", "127.0.0.1")
    assert "n0t-it" not in done.stdout + done.stderr


def test_hang_is_found_on_a_stock_postgres(database_url: str, own_stage: Stage) -> None:
    case = cases.find("uneven-5")
    own_stage.settings = {"HANGWATCH_DATABASE_URL": database_url}
    own_stage.start_server()
    own_stage.start_agents()
    own_stage.start_job(case, case.name)

    verdict = until(lambda: _right_verdict(own_stage, case), 120, "the verdict is right")
    incident = own_stage.client.get(f"/incidents/{verdict['incident']}")

    assert incident["job"] == verdict["job"]
    assert not (own_stage.folder / "data" / "postgres").exists()
    assert stock_postgres.PASSWORD not in own_stage.log("server").read_text()


def _right_verdict(stage: Stage, case: Case) -> dict[str, Any] | None:
    verdict = find_verdict(stage, case.name)
    return verdict if verdict and not judge.differences(case, verdict) else None
