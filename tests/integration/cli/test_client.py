"""The Python client: against a server that fails as told, and against a real one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.running_server import RunningServer
from tests.support.scripted_server import CUT, Reply, answering

from hangwatch_agent import client
from hangwatch_agent.client import Client, ClientError, TokenRequest

pytestmark = pytest.mark.integration

VERDICT: dict[str, Any] = {
    "job": "b3", "name": "gpt", "attempt": 1, "index": 7, "state": "healthy", "kind": "none",
    "confidence": 0.0, "since": "2026-11-20T18:00:03Z", "stalled_s": 0.0, "summary": "",
    "culprits": [], "culprit_ranks": "", "waiting": "", "path": [], "hints": [],
    "coverage": {"reporting": 2, "world_size": 2, "silent": ""},
    "action": {"advice": "none", "exclude_nodes": [], "evidence_stored": False},
    "incident": None, "of a newer server": 1,
}  # fmt: skip


def job(state: str, index: int = 7) -> Reply:
    verdict = VERDICT | {"state": state, "index": index}
    body = {
        "id": "b3", "name": "gpt", "attempt": 1, "world_size": 2, "reporting": 2, "state": state,
        "verdict": verdict, "nodes": ["node-a"], "is_live": True,
    }  # fmt: skip
    return Reply(body=json.dumps(body).encode())


def verdict(state: str, index: int) -> Reply:
    return Reply(body=json.dumps(VERDICT | {"state": state, "index": index}).encode())


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s, self.slept = 0.0, list[float]()

    def sleep(self, duration_s: float) -> None:
        self.slept.append(duration_s)
        self.now_s += duration_s


def calling(url: str, token: str = "") -> tuple[Client, Time]:
    time = Time()
    return Client(url, token, sleep=time.sleep, clock=lambda: time.now_s), time


def test_an_answer_keeps_what_the_server_said_beside_what_is_typed() -> None:
    with answering([verdict("healthy", 7)]) as server:
        found = calling(server.url)[0].verdict("b3")

    assert (found.state, found.exit_code, found.since.year) == ("healthy", client.FINE, 2026)
    assert json.loads(found.raw)["of a newer server"] == 1


def test_a_reading_call_that_was_cut_off_is_made_again_after_a_pause() -> None:
    with answering([CUT, CUT, job("healthy")]) as server:
        calls, time = calling(server.url)
        found = calls.job("gpt")

    assert found.state == "healthy"
    assert len(server.asked) == 3
    assert len(time.slept) == 2


def test_a_call_is_given_up_after_a_few_times() -> None:
    with answering([CUT]) as server:
        calls, _ = calling(server.url)
        with pytest.raises(ClientError, match="no server at") as caught:
            calls.job("gpt")

    assert caught.value.status is None
    assert caught.value.is_passing
    assert len(server.asked) == 3


def test_a_new_token_is_asked_for_once_since_its_text_would_be_lost() -> None:
    with answering([CUT]) as server, pytest.raises(ClientError):
        calling(server.url)[0].create_token(TokenRequest(name="x", scopes=("read",)))

    assert len(server.asked) == 1


def test_a_capture_is_asked_for_again_under_the_same_key() -> None:
    answer = {"id": "c1", "state": "taking", "ranks": "0", "parts": []}
    with answering([CUT, Reply(status=202, body=json.dumps(answer).encode())]) as server:
        found = calling(server.url)[0].request_capture("b3")

    keys = [asked.headers["Idempotency-Key"] for asked in server.asked]
    assert found.id == "c1"
    assert len(keys) == 2
    assert keys[0] == keys[1] != ""


def test_a_server_that_is_too_busy_is_asked_again_when_it_says() -> None:
    busy = Reply(429, b'{"detail": "too many"}', (("retry-after", "4"),))
    with answering([busy, job("healthy")]) as server:
        calls, time = calling(server.url)
        calls.job("gpt")

    assert 4 <= time.slept[0] <= 6


def test_a_server_that_is_busy_for_long_is_an_error_with_its_words() -> None:
    busy = Reply(429, b'{"detail": "too many of your calls wait"}', (("retry-after", "600"),))
    with answering([busy]) as server:
        calls, time = calling(server.url)
        with pytest.raises(ClientError, match="too many of your calls wait") as caught:
            calls.job("gpt")

    assert (caught.value.status, time.slept) == (429, [])


def test_a_refusal_is_not_repeated() -> None:
    with answering([Reply(403, b'{"detail": "this call needs the scope read"}')]) as server:
        with pytest.raises(ClientError, match="needs the scope read"):
            calling(server.url)[0].check("gpt", wait_s=60)

        assert len(server.asked) == 1


def test_checking_waits_for_a_job_that_is_not_there_yet_and_for_its_hang() -> None:
    absent = Reply(404, b'{"detail": "there is no job"}')
    script = [absent, absent, job("healthy", 7), verdict("hung", 8), job("hung", 8)]
    with answering(script) as server:
        found = calling(server.url)[0].check("gpt", wait_s=600)

    assert (found.state, found.verdict.exit_code) == ("hung", client.HUNG)
    assert server.asked[3].path == "/api/v1/jobs/b3/verdict?index=7&wait=60.000s"


def test_checking_ends_with_the_job_or_with_the_time() -> None:
    with answering([job("finished")]) as server:
        over = calling(server.url)[0].check("gpt", wait_s=600)
    with answering([job("healthy"), verdict("healthy", 7), job("healthy")]) as server:
        still = calling(server.url)[0].check("gpt", wait_s=2)

    assert over.state == "finished"
    assert still.state == "healthy"
    assert len(server.asked) == 3


def test_a_server_that_sends_its_waiters_away_is_not_asked_in_a_hurry() -> None:
    script = [job("healthy"), verdict("healthy", 7), job("healthy"), verdict("healthy", 7)]
    with answering([*script, job("hung", 8)]) as server:
        calls, time = calling(server.url)
        calls.check("gpt", wait_s=60)

    assert time.slept == [2.0, 2.0]


def test_checking_a_job_that_stays_absent_says_so_at_the_end() -> None:
    with answering([Reply(404, b'{"detail": "there is no job"}')]) as server:
        calls, time = calling(server.url)
        with pytest.raises(ClientError, match="there is no job"):
            calls.check("gpt", wait_s=5)

    assert time.now_s == 5


def test_lists_go_on_over_their_pages(cli_server: RunningServer, live_job: str) -> None:
    pages = [
        Reply(body=json.dumps({"items": [json.loads(job("healthy").body)], "next": next}).encode())
        for next in ("a b", None)
    ]
    with answering(pages) as server:
        found = list(calling(server.url)[0].jobs(query="gpt"))
    real = Client(cli_server.url, cli_server.admin_token)

    assert [one.id for one in found] == ["b3", "b3"]
    assert "cursor=a+b" in server.asked[1].path
    assert live_job in [one.name for one in real.jobs()]
    assert list(real.incidents(states=("confirmed",), job="nobody")) == []


def test_a_hold_on_a_real_healthy_job_has_nothing_to_wait_for(
    cli_server: RunningServer, live_job: str
) -> None:
    real = Client(cli_server.url, cli_server.admin_token)

    held = real.hold(real.job(live_job).id, timeout_s=60)

    assert (held.evidence_stored, held.incident) == (False, None)


def test_the_environment_says_which_server_and_where_the_token_is(
    cli_server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("secret") / "token"
    file.write_text(cli_server.admin_token + "\n")
    environ = {
        "HANGWATCH_SERVER": cli_server.url,
        "HANGWATCH_TOKEN_FILE": str(file),
        "HANGWATCH_OF_SOMEBODY_ELSE": "1",
    }

    assert Client.from_environment(environ).tokens().items
