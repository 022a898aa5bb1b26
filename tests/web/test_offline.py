"""The offline page in a browser: files in, verdict out, broken files explained, nothing run."""

from __future__ import annotations

import json
from collections.abc import Iterable

from playwright.sync_api import FilePayload, Page, expect
from tests.support import left_behind
from tests.web.conftest import Site

from hangwatch_server.offline import File

HOSTILE = '<script>alert("x")</script>\u202egnp_rank_9'


def give(page: Page, site: Site, files: Iterable[File]) -> None:
    page.goto(f"{site.url}/offline")
    page.set_input_files(
        "#offline-files",
        [
            FilePayload(name=file.name, mimeType="application/octet-stream", buffer=file.data)
            for file in files
        ],
    )
    page.get_by_role("button", name="Diagnose").click()


def test_files_give_the_same_verdict_as_a_watched_job(page: Page, site: Site) -> None:
    give(page, site, [*left_behind.dumps(), left_behind.stacks(2), left_behind.stacks_json(0)])

    expect(page.locator(".offline-heading")).to_have_text("Rank 2 holds up 3 ranks")
    expect(page.locator(".culprit-what")).to_contain_text("in its dataloader")
    expect(page.locator(".culprit-where")).to_have_text("storage.py:212 in read")
    expect(page.locator(".edges tbody tr")).to_contain_text("rank 2")
    expect(page.locator(".segment-culprit")).to_have_count(1)
    expect(page).to_have_title("▲ Offline · Hangwatch")


def test_each_file_that_cannot_be_read_is_explained(page: Page, site: Site) -> None:
    broken = [
        File(name="trace_rank_7", data=left_behind.dump(7).data[:60]),
        File(name="all.zip", data=b"PK\x03\x04rest"),
        File(name=HOSTILE, data=b""),
    ]
    give(page, site, [*left_behind.dumps(), *broken])

    rows = page.locator(".files").first.locator("tbody tr")

    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("it ends early, at byte 60")
    expect(rows.nth(1)).to_contain_text("a zip archive")
    expect(rows.nth(2)).to_contain_text("an empty file")
    expect(rows.nth(2)).to_contain_text("alert")
    assert page.locator("main script").count() == 0
    assert "\u202e" not in page.inner_text("main")


def test_two_jobs_at_once_are_two_verdicts_the_hang_first(page: Page, site: Site) -> None:
    calm = [
        File(name=file.name, data=file.data.replace(b'"retired":false', b'"retired":true'))
        for file in left_behind.dumps(range(2), late=None, name="calm_rank_{}")
    ]
    give(page, site, [*calm, *left_behind.dumps(name="stuck_rank_{}")])

    expect(page.locator(".offline-heading")).to_have_text(
        ["Rank 2 holds up 3 ranks", "No hang in these files"]
    )


def test_stacks_offer_nothing_that_would_lose_the_files(page: Page, site: Site) -> None:
    native = left_behind.PY_SPY_TEXT.replace("\n    ", "\n    __poll (libc.so.6)\n    ", 1)
    give(page, site, [*left_behind.dumps(), left_behind.stacks(2, native)])
    expect(page.locator(".segment").first).to_be_visible()

    page.locator("[data-stack-search]").fill("read")

    expect(page.locator("[data-stack-found]")).to_contain_text("found")
    expect(page.get_by_role("link", name="with native")).to_have_count(0)


def test_the_report_is_saved_as_json(page: Page, site: Site) -> None:
    give(page, site, [*left_behind.dumps(), File(name=HOSTILE, data=b"x")])

    with page.expect_download() as saving:
        page.get_by_role("button", name="Download JSON").click()

    document = json.loads(saving.value.path().read_text())
    assert document["jobs"][0]["verdict"]["culprit_ranks"] == "2"
    assert document["files"][-1]["note"].startswith("it seems to be text")


def test_the_choice_is_counted_before_it_is_sent(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/offline")

    page.set_input_files(
        "#offline-files",
        [FilePayload(name="a_rank_1", mimeType="text/plain", buffer=b"x" * 3000)],
    )

    expect(page.locator("[data-chosen]")).to_have_text("1 file, 3 KiB")


def test_no_file_is_asked_for_again(page: Page, site: Site) -> None:
    answer = page.request.post(f"{site.url}/offline", multipart={"csrf_token": ""})

    assert answer.status == 400
    assert "no file came with the request" in answer.text()


def test_too_many_files_are_refused_on_a_page(page: Page, site: Site) -> None:
    boundary = "limit"
    part = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="files"; filename="r1"\r\n\r\nx\r\n'
    )
    body = (part * 1001 + f"--{boundary}--\r\n").encode()

    answer = page.request.post(
        f"{site.url}/offline",
        data=body,
        headers={"content-type": f"multipart/form-data; boundary={boundary}"},
    )

    assert answer.status == 400
    assert "hangwatch diagnose FOLDER" in answer.text()
