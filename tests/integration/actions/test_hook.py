"""The actions hook on a real Postgres, with real commands: which hangs get one, how often, how far.

What the loop believes of a job is given here; tests/schedulers has a real hang of a real job.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import postgres as support
from tests.support import verdicts as make

from hangwatch_server.actions.hook import Hook
from hangwatch_server.bus import MemoryBus
from hangwatch_server.db import actions, audit, incidents, jobs, leases
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import Incident, Job, State, Verdict
from hangwatch_server.model.actions import ActionState
from hangwatch_server.settings import ServerSettings

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

NOTE = """
import json, os, sys
told = {"document": json.load(sys.stdin), "environment": dict(os.environ), "words": sys.argv[1:]}
with open(sys.argv[1], "a") as notes:
    notes.write(json.dumps(told) + "\\n")
print("noted")
"""


class Seen:
    """What the loop sees at this moment."""

    def __init__(self) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self.owner = True

    async def job(self, job_id: str) -> Job:
        if job_id not in self.verdicts:
            raise NotFoundError(job_id)
        return replace(make.job(job_id), verdict=self.verdicts[job_id])

    def is_ours(self, job_id: str) -> bool:
        return self.owner


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A file to which the command adds what it was told."""
    (tmp_path / "note.py").write_text(NOTE)
    return tmp_path / "notes.jsonl"


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A secret as the server's own environment may hold one."""
    monkeypatch.setenv("SERVER_SECRET", "do not tell")
    return


def told(notes: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def hook(db: Database, seen: Seen, command: str, **changes: Any) -> Hook:
    settings = ServerSettings(action_command=command, **{"action_settle_s": 0.0, **changes})
    return Hook(db, MemoryBus(), seen, settings)


def noting(notes: Path) -> str:
    return f"{sys.executable} {notes.with_name('note.py')} {notes} 'two words; $HOME'"


async def hang(db: Database, seen: Seen, job: str = "job-1", confidence: float = 0.94) -> Incident:
    """A confirmed incident that is seen to stand."""
    await jobs.save(db, make.job(job), f"run of {job}", {})
    lease = await leases.claim(db, job, "server-a", 60)
    assert lease is not None
    verdict = replace(make.verdict(job), confidence=confidence)
    opened = await incidents.open_incident(db, lease, verdict)
    confirmed = await incidents.confirm(db, lease, opened.id, verdict)
    seen.verdicts[job] = confirmed.verdict
    return confirmed


async def events(db: Database, incident: Incident) -> list[str]:
    found = await incidents.find(db, incident.id)
    assert found is not None
    return [event.new for event in found.history if event.new.startswith("action")]


@pytest.mark.usefixtures("environ")
async def test_command_is_told_the_incident_and_no_secret_of_the_server(
    db: Database, seen: Seen, notes: Path
) -> None:
    incident = await hang(db, seen)

    await hook(db, seen, noting(notes), public_url="https://hw.example").look()

    (one,) = told(notes)
    assert one["words"][1] == "two words; $HOME"  # no shell has read it
    assert one["document"]["url"] == f"https://hw.example/incidents/{incident.id}"
    assert one["document"]["nodes"] == ["node-a", "node-b"]
    assert one["document"]["incident"]["id"] == incident.id
    assert one["document"]["incident"]["verdict"]["culprits"][0]["node"] == "node-b"
    assert one["environment"]["HANGWATCH_CULPRIT_NODES"] == "node-b"
    assert one["environment"]["HANGWATCH_ADVICE"] == "investigate"
    assert "SERVER_SECRET" not in one["environment"]


async def test_what_came_of_it_is_in_the_history_and_the_audit(
    db: Database, seen: Seen, notes: Path
) -> None:
    incident = await hang(db, seen)

    await hook(db, seen, noting(notes)).look()

    run = await actions.find(db, incident.id)
    assert run is not None
    assert (run.state, run.exit_code, run.output) == (ActionState.DONE, 0, "noted\n")
    assert await events(db, incident) == ["action_running", "action_done"]
    rows, _ = await audit.list_page(db)
    assert [row.action for row in rows] == ["action.done", "action.running"]
    assert {row.subject for row in rows} == {f"incident:{incident.id}"}


async def test_two_servers_that_race_run_one_command(
    database_url: str, seen: Seen, notes: Path
) -> None:
    servers = [Database(database_url) for _ in range(4)]
    for server in servers:
        await server.open()
    await hang(servers[0], seen)

    for _ in range(2):
        async with asyncio.TaskGroup() as racing:
            for server in servers:
                racing.create_task(hook(server, seen, noting(notes)).look())

    assert len(told(notes)) == 1
    for server in servers:
        await server.close()


async def test_server_that_does_not_own_the_job_leaves_the_command_to_the_one_that_does(
    db: Database, seen: Seen, notes: Path
) -> None:
    incident = await hang(db, seen)
    seen.owner = False

    await hook(db, seen, noting(notes)).look()

    assert told(notes) == []
    assert await actions.find(db, incident.id) is None


async def test_nothing_runs_before_the_incident_has_settled(
    db: Database, seen: Seen, notes: Path
) -> None:
    incident = await hang(db, seen)

    await hook(db, seen, noting(notes), action_settle_s=3600.0).look()

    assert told(notes) == []
    assert await actions.find(db, incident.id) is None


async def test_nothing_runs_where_somebody_looks_after_it(
    db: Database, seen: Seen, notes: Path
) -> None:
    acknowledged, snoozed = await hang(db, seen, "job-1"), await hang(db, seen, "job-2")
    await incidents.acknowledge(db, acknowledged.id, "ann", "")
    await incidents.snooze(db, snoozed.id, "ann", datetime.now(UTC) + timedelta(hours=1))

    await hook(db, seen, noting(notes)).look()

    assert told(notes) == []


async def test_nothing_runs_on_doubt(db: Database, seen: Seen, notes: Path) -> None:
    await hang(db, seen, "unsure", confidence=0.6)
    gone = await hang(db, seen, "gone")
    seen.verdicts["gone"] = replace(gone.verdict, state=State.UNKNOWN)
    await hang(db, seen, "not seen since the server's start")
    del seen.verdicts["not seen since the server's start"]

    await hook(db, seen, noting(notes)).look()

    assert told(notes) == []


async def test_doubt_that_goes_lets_the_command_run(db: Database, seen: Seen, notes: Path) -> None:
    incident = await hang(db, seen, confidence=0.6)
    acting = hook(db, seen, noting(notes))

    await acting.look()
    seen.verdicts["job-1"] = replace(incident.verdict, confidence=0.95)
    await acting.look()

    assert len(told(notes)) == 1


async def test_limit_over_all_jobs_holds_the_rest_back_for_good(
    db: Database, seen: Seen, notes: Path
) -> None:
    found = [await hang(db, seen, f"job-{number}") for number in range(4)]
    acting = hook(db, seen, noting(notes), action_per_hour=2)

    await acting.look()
    await acting.look()

    assert len(told(notes)) == 2
    runs = [await actions.find(db, incident.id) for incident in found]
    assert [run.state.value for run in runs if run] == ["done", "done", "held_back", "held_back"]
    assert runs[3] is not None
    assert "--action-per-hour" in runs[3].why
    assert await events(db, found[3]) == ["action_held_back"]


async def test_job_that_hangs_again_gets_no_second_command_within_the_hour(
    db: Database, seen: Seen, notes: Path
) -> None:
    first = await hang(db, seen)
    acting = hook(db, seen, noting(notes))
    await acting.look()
    lease = await leases.claim(db, "job-1", "server-a", 60)
    assert lease is not None
    await incidents.end(db, lease, first.id, incidents.IncidentState.ENDED, "restarted")

    second = await hang(db, seen)
    await acting.look()

    assert len(told(notes)) == 1
    assert await events(db, second) == ["action_held_back"]


async def test_dry_run_only_writes_down(db: Database, seen: Seen, notes: Path) -> None:
    incident = await hang(db, seen)

    await hook(db, seen, noting(notes), action_dry_run=True).look()

    assert told(notes) == []
    assert await events(db, incident) == ["action_dry_run"]


@pytest.mark.parametrize(
    ("command", "state", "code", "words"),
    [
        ("sh -c 'echo no such node; exit 3'", ActionState.FAILED, 3, "no such node"),
        ("sh -c 'echo begun; sleep 600 & wait'", ActionState.TIMED_OUT, None, "begun"),
        ("sh -c 'sleep 600 & echo left one behind'", ActionState.DONE, 0, "left one behind"),
        ("sh -c 'exec <&-; echo deaf'", ActionState.DONE, 0, "deaf"),
    ],
)
async def test_end_of_a_command_is_told_as_it_was(
    db: Database, seen: Seen, command: str, state: ActionState, code: int | None, words: str
) -> None:
    incident = await hang(db, seen)

    timeout_s = 1.0 if state is ActionState.TIMED_OUT else 60.0
    await hook(db, seen, command, action_timeout_s=timeout_s).look()

    run = await actions.find(db, incident.id)
    assert run is not None
    assert (run.state, run.exit_code) == (state, code)
    assert words in run.output


async def test_output_without_end_is_kept_to_its_end(db: Database, seen: Seen) -> None:
    incident = await hang(db, seen)

    await hook(db, seen, "sh -c 'seq 1 200000; echo last'").look()

    run = await actions.find(db, incident.id)
    assert run is not None
    assert len(run.output) <= 16 * 1024
    assert run.output.endswith("200000\nlast\n")


async def test_command_of_a_server_that_died_is_called_lost_and_not_run_again(
    db: Database, database_url: str, seen: Seen, notes: Path
) -> None:
    incident = await hang(db, seen)
    limits = actions.Limits(per_hour=9, per_job_per_hour=9)
    claim = await actions.claim(db, incident, ("drain",), limits, for_s=600, is_dry_run=False)
    assert claim is not None
    support.execute(database_url, "UPDATE actions SET claimed_until = now() - interval '1 s'")

    await hook(db, seen, noting(notes)).look()
    is_written = await actions.finish(db, claim, ActionState.DONE, 0, "late", "late")

    assert told(notes) == []
    assert not is_written
    assert await events(db, incident) == ["action_running", "action_lost"]
