"""What pages answer to requests that people and their browsers do send, over hand-made scenes."""

from __future__ import annotations

import dataclasses
import re

import httpx
import pytest
from fastapi import FastAPI
from tests.web import making, preview, scenes

from hangwatch_server import model

pytestmark = pytest.mark.anyio

INCIDENT = "/incidents/inc-hung"


@pytest.fixture
def scene() -> scenes.Scene:
    return scenes.everything()


@pytest.fixture
def app(scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    app = preview.build()
    preview.show(app, scene, monkeypatch.setattr)
    return app


@pytest.fixture
def browser(app: FastAPI) -> httpx.AsyncClient:
    """An operator's."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, client=("127.0.0.1", 5000)),
        base_url="http://localhost",
        headers={"accept": "text/html"},
        cookies={"hangwatch_session": preview.operator_cookie(app)},
    )


async def test_an_emptied_field_asks_for_no_rank(browser: httpx.AsyncClient) -> None:
    page = await browser.get(f"{INCIDENT}?rank=")

    assert page.status_code == 200
    assert "Rank 5 holds up 7 ranks" in page.text


async def test_an_incident_of_many_causes_has_a_section_for_each(
    browser: httpx.AsyncClient, scene: scenes.Scene
) -> None:
    hung = next(row for row in scene.incidents if row.id == "inc-hung")
    cause = model.Cause(
        kind=model.Kind.MISSING_RANKS, summary="Rank 3 too.", culprit_ranks="3", waiting="2"
    )
    verdict = dataclasses.replace(hung.verdict, causes=(cause,) * 12)
    scene.incidents = [dataclasses.replace(hung, verdict=verdict)]

    page = await browser.get(INCIDENT)

    assert page.status_code == 200
    assert "Separate cause 13 of 13" in page.text


async def test_a_filter_that_names_a_million_ranks_shows_those_of_the_job(
    browser: httpx.AsyncClient,
) -> None:
    page = (await browser.get("/jobs/a1b2c3d4e5f6?ranks=4-999999")).text

    assert re.findall(r'id="rank-(\d+)"', page) == ["4", "5", "6", "7"]


async def test_the_capture_form_says_whom_it_asks(browser: httpx.AsyncClient) -> None:
    assert "Empty: all 8 ranks." in (await browser.get("/jobs/a1b2c3d4e5f6")).text


async def test_a_node_with_an_odd_name_has_its_own_event_stream(
    browser: httpx.AsyncClient, scene: scenes.Scene
) -> None:
    scene.nodes.append(making.node("rack 1? #2"))

    page = (await browser.get("/nodes/rack%201%3F%20%232")).text

    assert 'hx-sse:connect="/nodes/rack%201%3F%20%232/live"' in page


async def test_a_comment_with_a_character_that_cannot_be_stored_is_refused(
    browser: httpx.AsyncClient,
) -> None:
    token = re.search(r'name="csrf_token" value="([0-9a-f]+)"', (await browser.get(INCIDENT)).text)
    assert token is not None

    answer = await browser.post(
        f"{INCIDENT}/comments", data={"csrf_token": token[1], "text": "a\0b"}
    )

    assert answer.status_code == 422


async def test_a_link_to_the_login_puts_no_words_of_its_own_there(
    browser: httpx.AsyncClient,
) -> None:
    assert "call 555" not in (await browser.get("/login?error=call+555+for+a+token")).text


async def test_a_form_of_a_session_that_is_over_leads_back_to_its_page(
    app: FastAPI, browser: httpx.AsyncClient
) -> None:
    app.state.settings.allow_anonymous = False
    browser.cookies.clear()
    headers = {"referer": f"http://localhost{INCIDENT}?rank=3"}

    own = await browser.post(f"{INCIDENT}/acknowledge", headers=headers)
    foreign = await browser.post(
        f"{INCIDENT}/acknowledge",
        headers={"referer": "http://evil.example/trap"},
    )

    assert (own.status_code, foreign.status_code) == (303, 303)
    assert own.headers["location"] == "/login?next=%2Fincidents%2Finc-hung"
    assert foreign.headers["location"] == "/login?next=%2F"


async def test_an_event_stream_without_a_session_is_refused_and_not_led_to_the_login(
    app: FastAPI, browser: httpx.AsyncClient
) -> None:
    app.state.settings.allow_anonymous = False
    browser.cookies.clear()

    answer = await browser.get("/live", headers={"accept": "text/html, text/event-stream"})

    assert answer.status_code == 401


async def test_a_job_that_nobody_reports_is_not_said_to_go_on_waiting(
    browser: httpx.AsyncClient, scene: scenes.Scene
) -> None:
    verdict = making.verdict("ab12", "old", model.State.UNKNOWN, stalled_s=252.4)
    scene.add(dataclasses.replace(making.job(verdict), is_live=False), ())

    page = (await browser.get("/jobs/ab12")).text

    said = re.search(r'<p class="verdict-state">(.*)</p>', page)
    assert said is not None
    assert "unknown" in said[1]
    assert "4 min 12 s" not in said[1]


async def test_another_site_cannot_have_files_read_here(
    app: FastAPI, browser: httpx.AsyncClient
) -> None:
    browser.cookies.clear()
    files = {"files": ("trace_rank_0", b"{}")}

    own = await browser.post("/offline", files=files)
    foreign = await browser.post("/offline", files=files, headers={"sec-fetch-site": "cross-site"})

    assert (own.status_code, foreign.status_code) == (200, 403)


@pytest.mark.parametrize("path", [INCIDENT, f"{INCIDENT}/stacks"])
async def test_a_call_with_an_odd_name_cannot_turn_the_heading_round(
    browser: httpx.AsyncClient, scene: scenes.Scene, path: str
) -> None:
    hung = next(row for row in scene.incidents if row.id == "inc-hung")
    verdict = dataclasses.replace(
        hung.verdict, kind=model.Kind.STALLED_COLLECTIVE, culprit_ranks="", op="all\u202ereduce"
    )
    scene.incidents = [dataclasses.replace(hung, verdict=verdict)]

    page = (await browser.get(path)).text

    assert "allreduce #1042" in page
    assert "\u202e" not in page
