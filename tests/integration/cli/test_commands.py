"""The commands of people and schedulers, run as processes: what they print and how they exit."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading

import pytest
from tests.integration.cli.conftest import Hangwatch
from tests.support import running_server, synthetic_agent, waiting
from tests.support.running_server import RunningServer

import hangwatch_agent
from hangwatch_agent import wire

pytestmark = pytest.mark.integration


def test_version_is_printed(hangwatch: Hangwatch) -> None:
    assert hangwatch("--version").stdout == f"hangwatch {hangwatch_agent.__version__}\n"


def test_check_of_a_healthy_job_exits_0(hangwatch: Hangwatch, live_job: str) -> None:
    done = hangwatch("check", live_job)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("healthy")


def test_check_of_an_unknown_job_exits_2_and_names_the_next_command(hangwatch: Hangwatch) -> None:
    done = hangwatch("check", "nobody-knows-me")

    assert (done.returncode, done.stdout) == (2, "")
    assert "nobody-knows-me" in done.stderr
    assert "hangwatch status" in done.stderr


def test_check_of_a_hung_job_exits_1_and_says_why(
    hangwatch: Hangwatch, cli_server: RunningServer
) -> None:
    token = cli_server.new_token("agent", "node-hung")
    launch = wire.Launch(key="launch that hangs", name="gpt-hung")
    with synthetic_agent.beating(cli_server.url, token, "node-hung", launch) as agent:
        waiting.until(lambda: hangwatch("check", "gpt-hung").returncode == 0, 90, "it is fine")
        agent.is_gone = True
        done = waiting.until(lambda: _if_hung(hangwatch("check", "gpt-hung")), 90, "it is hung")

    assert "ank 1" in done.stdout
    assert done.stderr == ""


def _if_hung(
    done: subprocess.CompletedProcess[str],
) -> subprocess.CompletedProcess[str] | None:
    return done if done.returncode == 1 else None


def test_check_without_a_server_exits_2(hangwatch: Hangwatch) -> None:
    done = hangwatch("check", "any", HANGWATCH_SERVER="http://127.0.0.1:1")

    assert done.returncode == 2
    assert "nothing listens there" in done.stderr
    assert "hangwatch serve" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("token", ["", "hw_00000000_wrong"])
def test_a_missing_or_wrong_token_is_said_in_one_sentence(hangwatch: Hangwatch, token: str) -> None:
    done = hangwatch("status", HANGWATCH_TOKEN=token)

    assert done.returncode == 2
    assert "hangwatch token create" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_token_can_come_from_a_file(
    hangwatch: Hangwatch, cli_server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("secret") / "token"
    file.write_text(cli_server.admin_token + "\n")

    done = hangwatch("token", "list", "--token", "hw_wrong", HANGWATCH_TOKEN="x")
    good = hangwatch("token", "list", HANGWATCH_TOKEN="", HANGWATCH_TOKEN_FILE=str(file))

    assert done.returncode == 2
    assert good.returncode == 0


def test_status_lists_jobs_as_a_table_and_as_json(hangwatch: Hangwatch, live_job: str) -> None:
    table = hangwatch("status")
    data = json.loads(hangwatch("status", "--json").stdout)

    assert table.returncode == 0
    assert table.stdout.splitlines()[0].split()[:3] == ["NAME", "JOB", "STATE"]
    assert live_job in table.stdout
    assert live_job in [job["name"] for job in data["items"]]


def test_status_of_one_job_says_who_reports(hangwatch: Hangwatch, live_job: str) -> None:
    done = hangwatch("status", live_job)

    assert "2 of 2 ranks reporting" in done.stdout


def test_stacks_prints_the_merged_stacks(hangwatch: Hangwatch, live_job: str) -> None:
    done = hangwatch("stacks", live_job, "--ranks", "0-1")

    assert done.returncode == 0
    assert "train_step" in done.stdout


def test_stacks_as_json_is_the_tree(hangwatch: Hangwatch, live_job: str) -> None:
    done = hangwatch("stacks", live_job, "--ranks", "1", "--json")

    assert json.loads(done.stdout)["classes"][0]["ranks"] == "1"


def test_stacks_of_bad_ranks_names_the_part(hangwatch: Hangwatch, live_job: str) -> None:
    done = hangwatch("stacks", live_job, "--ranks", "0-1,two")

    assert done.returncode == 2
    assert "'two'" in done.stderr


def test_a_token_is_created_listed_and_revoked(hangwatch: Hangwatch) -> None:
    created = hangwatch("token", "create", "--scope", "agent", "--node", "node-t", "--json")
    row = json.loads(created.stdout)
    listed = hangwatch("token", "list")
    revoked = hangwatch("token", "revoke", row["id"])

    assert (row["node"], row["scopes"]) == ("node-t", ["agent"])
    assert row["prefix"] in listed.stdout
    assert row["token"] not in listed.stdout
    assert revoked.returncode == 0
    assert "revoked" in hangwatch("token", "list").stdout


def test_an_agent_token_needs_a_node(hangwatch: Hangwatch) -> None:
    done = hangwatch("token", "create", "--scope", "agent")

    assert done.returncode == 2
    assert "--node" in done.stderr


def test_config_shows_every_setting_with_its_source_and_no_secret(
    hangwatch: Hangwatch, cli_server: RunningServer
) -> None:
    done = hangwatch("config", "--json", HANGWATCH_SUSPECT_AFTER_S="12")
    rows = {row["key"]: row for row in json.loads(done.stdout)}

    assert rows["suspect_after_s"]["value"] == "12.0"
    assert "HANGWATCH_SUSPECT_AFTER_S" in rows["suspect_after_s"]["source"]
    assert rows["port"]["source"] == "default"
    assert cli_server.admin_token not in done.stdout
    assert set(rows["token"]["value"]) == {"*"}


def test_an_unknown_setting_is_an_error_with_a_suggestion(hangwatch: Hangwatch) -> None:
    done = hangwatch("config", HANGWATCH_SUSPECT_AFTR_S="12")

    assert done.returncode == 2
    assert "HANGWATCH_SUSPECT_AFTER_S" in done.stderr


def test_a_setting_that_is_no_number_is_an_error(hangwatch: Hangwatch) -> None:
    done = hangwatch("serve", "--port", "http")

    assert done.returncode == 2
    assert "port must be a whole number" in done.stderr


def test_output_into_a_closed_pipe_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [*running_server.hangwatch(), "config"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=180,
            check=False,
        )

    assert done.stderr == ""


def test_a_redirect_does_not_carry_the_token_away(hangwatch: Hangwatch) -> None:
    asked: list[str] = []

    class Redirecting(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(307)
            self.send_header("location", f"http://127.0.0.1:{port}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silent."""

    with http.server.HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        done = hangwatch("status", HANGWATCH_SERVER=f"http://127.0.0.1:{port}")
        server.shutdown()
        thread.join()

    assert done.returncode == 2
    assert "/elsewhere" in done.stderr
    assert asked == ["/api/v1/jobs?limit=100"]


def test_a_proxy_of_the_site_is_not_asked_for_this_machine(hangwatch: Hangwatch) -> None:
    done = hangwatch("status", http_proxy="http://127.0.0.1:1", HTTP_PROXY="http://127.0.0.1:1")

    assert done.returncode == 0


def test_a_name_that_is_no_text_is_only_unknown(hangwatch: Hangwatch) -> None:
    done = hangwatch("check", os.fsdecode(b"x\xff"))

    assert done.returncode == 2
    assert "hangwatch status" in done.stderr


def test_a_simulated_job_gets_the_right_verdict_from_a_server_that_runs(
    hangwatch: Hangwatch, cli_server: RunningServer
) -> None:
    job = ("--ranks", "8", "--nodes", "2", "--fault", "killed", "--fault-after", "2")

    done = hangwatch("simulate", "--server", cli_server.url, *job, "--once")

    assert (done.returncode, done.stderr) == (0, "")
    assert "8 ranks on 2 nodes, tensor 2 x data 2 x pipeline 2" in done.stdout
    assert "culprit    rank 5 on node-0001" in done.stdout
    assert "outcome    the truth" in done.stdout


def test_a_simulation_needs_a_token_for_all_nodes(
    hangwatch: Hangwatch, cli_server: RunningServer
) -> None:
    token = cli_server.new_token("read")

    done = hangwatch("simulate", "--server", cli_server.url, "--once", HANGWATCH_TOKEN=token)

    assert done.returncode == 2
    assert "has no scope agent" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--fault", "fire"), "known are healthy, dataloader"),
        (("--ranks", "64", "--nodes", "7"), "do not share 7 nodes evenly"),
        (("--ranks", "4096", "--nodes", "2"), "at most 1024 on each"),
        (("--ranks", "1"), "--ranks 1 is not between 2"),
        (("--ranks", "2", "--nodes", "1", "--fault", "node-lost"), "--nodes 2 or more"),
    ],
)
def test_a_simulation_that_cannot_be_is_said_why(
    hangwatch: Hangwatch, arguments: tuple[str, ...], words: str
) -> None:
    done = hangwatch("simulate", *arguments)

    assert done.returncode == 2
    assert words in done.stderr


def test_an_unknown_log_level_is_said_with_the_known_ones(hangwatch: Hangwatch) -> None:
    done = hangwatch("serve", "--port", "0", "--log-level", "loud")

    assert done.returncode == 2
    assert "debug, info, warning, error" in done.stderr


def test_a_hold_on_a_healthy_job_exits_0_at_once(hangwatch: Hangwatch, live_job: str) -> None:
    done = hangwatch("hold", live_job, "--timeout", "2m")

    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to wait for" in done.stdout


def test_a_hold_of_a_hung_job_ends_with_its_evidence(
    hangwatch: Hangwatch, cli_server: RunningServer
) -> None:
    token = cli_server.new_token("agent", "node-held")
    launch = wire.Launch(key="launch that is held", name="gpt-held")
    with synthetic_agent.beating(cli_server.url, token, "node-held", launch) as agent:
        waiting.until(lambda: hangwatch("check", "gpt-held").returncode == 0, 90, "it is fine")
        agent.is_gone = True
        hung = hangwatch("check", "gpt-held", "--wait", "90s")
        held = hangwatch("hold", "gpt-held", "--timeout", "60s", "--json")

    assert (hung.returncode, hung.stderr) == (1, "")
    assert held.returncode == 0
    assert json.loads(held.stdout)["evidence_stored"] is True


@pytest.mark.parametrize("command", ["check", "hold"])
def test_no_server_is_exit_2_for_whoever_scripts(hangwatch: Hangwatch, command: str) -> None:
    done = hangwatch(command, "any", HANGWATCH_SERVER="http://127.0.0.1:1")

    assert done.returncode == 2
    assert "nothing listens there" in done.stderr


def test_a_check_waits_for_a_server_that_is_away(hangwatch: Hangwatch) -> None:
    done = hangwatch("check", "any", "--wait", "1s", HANGWATCH_SERVER="http://127.0.0.1:1")

    assert done.returncode == 2


def test_a_wait_that_is_no_duration_is_said_with_an_example(hangwatch: Hangwatch) -> None:
    done = hangwatch("check", "any", "--wait", "soon")

    assert done.returncode == 2
    assert "30s, 2m or 1h" in done.stderr
