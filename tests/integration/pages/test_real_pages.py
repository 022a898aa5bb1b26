"""Pages over what a real server says of a real (if synthetic) job: its ranks, nodes and lists."""

from __future__ import annotations

import httpx
import pytest
from tests.support import waiting

pytestmark = pytest.mark.integration


def test_the_overview_counts_what_runs(admin: httpx.Client, job: str) -> None:
    page = admin.get("/").text

    assert "The one job is making progress." in page
    assert f'href="/jobs/{job}"' in page


def test_a_filter_that_matches_nothing_offers_the_way_back(admin: httpx.Client, job: str) -> None:
    page = admin.get("/?q=nothing-like-it").text

    assert "No running job matches" in page
    assert 'href="/">Clear filters' in page


def test_a_rank_shows_its_groups_and_last_calls(admin: httpx.Client, job: str) -> None:
    page = admin.get(f"/jobs/{job}/ranks/1").text
    document = admin.get(f"/jobs/{job}/ranks/1.json").json()

    assert "data parallel" in page
    assert "all_reduce" in page
    assert document["row"]["node"] == "node-live"
    assert document["groups"][0]["size"] == 2
    assert document["calls"][0]["op"] == "all_reduce"
    assert admin.get(f"/jobs/{job}/ranks/2").status_code == 404


def test_the_api_tells_what_the_page_of_a_rank_shows(admin: httpx.Client, job: str) -> None:
    asked = admin.get(f"/api/v1/jobs/{job}/ranks/0")

    assert asked.status_code == 200
    assert asked.json()["process"]["state"] == "S"
    assert admin.get(f"/api/v1/jobs/{job}/ranks/0/captures").json() == []
    assert admin.get(f"/api/v1/jobs/{job}/ranks/0/tree").json()["roots"] == []
    assert admin.get(f"/api/v1/jobs/{job}/ranks/9").status_code == 404


def test_a_node_lists_its_ranks(admin: httpx.Client, job: str) -> None:
    page = waiting.until(
        lambda: (text := admin.get("/nodes/node-live").text).count("/ranks/") >= 2 and text,
        20,
        "the node knows its ranks",
    )

    assert f'href="/jobs/{job}/ranks/0"' in page
    assert "GPU hours lost" in admin.get("/nodes").text


def test_without_incidents_the_list_says_so(admin: httpx.Client) -> None:
    page = admin.get("/incidents").text

    assert "No incident is open" in page
    assert "No job has hung while Hangwatch looked on" in page


def test_nonsense_in_a_filter_is_a_page_that_says_so(admin: httpx.Client) -> None:
    answer = admin.get("/incidents?opened=yesterday")

    assert answer.status_code == 422
    assert "opened" in answer.text
