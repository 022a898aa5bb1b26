"""The server on an operator's own Postgres instead of the embedded one."""

from __future__ import annotations

from tests.support import stock_postgres
from tests.support.waiting import until

from hangwatch_server.demo import cases, judge
from hangwatch_server.demo.main import find_verdict
from hangwatch_server.demo.stage import Stage


def test_hang_is_found_on_a_stock_postgres(own_stage: Stage) -> None:
    case = cases.find("uneven-5")
    with stock_postgres.running() as url:
        own_stage.settings = {"HANGWATCH_DATABASE_URL": url}
        own_stage.start_server()
        own_stage.start_agents()
        own_stage.start_job(case, case.name)

        verdict = until(
            lambda: (
                found
                if (found := find_verdict(own_stage, case.name))
                and not judge.differences(case, found)
                else None
            ),
            120,
            "the verdict is right",
        )
        incident = own_stage.client.get(f"/incidents/{verdict['incident']}")
        own_stage.stop()

    assert incident["job"] == verdict["job"]
    assert not (own_stage.folder / "data" / "postgres").exists()
    assert stock_postgres.PASSWORD not in own_stage.log("server").read_text()
