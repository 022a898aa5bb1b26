"""Holds docker-compose.yml and what lies beside it to each other and to the docs; starts nothing.

tests/deploy starts it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.deploy import compose
from tests.deploy.compose import Service

from hangwatch_server.demo import cases
from hangwatch_server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "docker-compose.yml"
FOLDER = ROOT / "deploy" / "compose"
PAGE = (ROOT / "docs" / "deploy.md").read_text()
ACCESS = (ROOT / "docs" / "access.md").read_text()
SERVICES: Mapping[str, Service] = compose.read(FILE, {}, ["demo"]).services
SERVERS = ["server-1", "server-2"]


@pytest.mark.parametrize("path", [FILE, FOLDER / "tls.yml"], ids=lambda path: path.name)
def test_file_is_what_the_compose_specification_allows(path: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_demo_is_started_only_where_it_is_asked_for() -> None:
    without = compose.read(FILE, {}).services

    assert set(SERVICES) - set(without) == {"job-a", "job-b", "agent-a", "agent-b", "enrol"}


def test_only_the_proxy_is_published_and_only_to_this_machine() -> None:
    published = {name: service.ports for name, service in SERVICES.items() if service.ports}

    assert published == {"proxy": (("127.0.0.1", 8042, 8042),)}


def test_postgres_and_redis_are_for_the_servers_alone() -> None:
    document = compose.yaml.safe_load(FILE.read_text())
    on_data = {name for name, service in SERVICES.items() if "data" in service.networks}

    assert document["networks"]["data"] == {"internal": True}
    assert SERVICES["postgres"].networks == SERVICES["redis"].networks == ("data",)
    assert on_data == {"postgres", "redis", "migrate", *SERVERS}


def test_secrets_are_files_and_never_in_an_environment() -> None:
    secret = re.compile(r"PASSWORD|TOKEN|SECRET|_KEY|DATABASE_URL|REDIS_URL")
    named = [
        (name, key, value)
        for name, service in SERVICES.items()
        for key, value in service.environment.items()
        if secret.search(key)
    ]

    assert len(named) >= 8
    for name, key, value in named:
        assert key.endswith("_FILE")
        folder, _, file = value.rpartition("/")
        assert folder == "/enrol" or file in SERVICES[name].secrets


def test_every_secret_is_made_by_the_script_and_kept_out_of_git(tmp_path: Path) -> None:
    project = compose.read(FILE, {"HANGWATCH_SECRETS": str(tmp_path / "made")}, ["demo"])

    subprocess.run([FOLDER / "secrets.sh", tmp_path / "made"], check=True)

    for path in project.secrets.values():
        assert len(path.read_text().strip()) >= 32
    assert "secrets/\n" in (ROOT / ".gitignore").read_text()


def test_both_servers_are_alike_and_the_proxy_knows_them() -> None:
    first, second = (SERVICES[name] for name in SERVERS)
    (upstreams,) = re.findall(r"reverse_proxy (.*) \{", (FOLDER / "Caddyfile").read_text())

    assert first.environment == second.environment
    assert first.depends_on == second.depends_on
    assert upstreams.split() == [f"{name}:{ServerSettings().port}" for name in SERVERS]


def test_proxies_drop_the_headers_that_sign_people_in() -> None:
    nginx = (FOLDER.with_name("nginx") / "hangwatch.conf").read_text()
    dropped = set(re.findall(r"header_up -(\S+)", (FOLDER / "Caddyfile").read_text()))

    assert dropped == set(re.findall(r'proxy_set_header (\S+) "";', nginx))
    for name in re.findall(r"HANGWATCH_PROXY_\w+_HEADER=([\w-]+)", ACCESS):
        assert name in dropped


def test_proxy_is_believed_at_the_network_that_it_is_on() -> None:
    project = compose.read(FILE, {"HANGWATCH_SUBNET": "192.0.2.0/24"})
    server = project.services["server-1"]

    assert project.subnets == {"front": "192.0.2.0/24"}
    assert server.environment["HANGWATCH_TRUSTED_PROXIES"] == "192.0.2.0/24"
    assert "front" in server.networks
    assert set(SERVICES) - {"proxy", "migrate", *SERVERS} == {
        name for name, service in SERVICES.items() if "front" not in service.networks
    }


def test_demo_is_the_case_that_make_demo_plays() -> None:
    case = cases.load()[0]
    for number, name in enumerate(("job-a", "job-b")):
        words = SERVICES[name].command or ()

        assert words[-1] == f"{case.family}/{case.program}"
        assert f"--nnodes={case.nodes}" in words
        assert f"--nproc-per-node={case.ranks // case.nodes}" in words
        assert f"--node-rank={number}" in words


def test_every_variable_of_compose_is_in_the_docs_with_its_default() -> None:
    text = FILE.read_text() + (FOLDER / "tls.yml").read_text()
    found = set(re.findall(r"\$\{(HANGWATCH_\w+)(?::[-?])?([^}]*)", text))

    assert len({name for name, _ in found}) >= 6
    for name, default in found:
        shown = "none" if "set it to" in default else f"`{default}`"
        assert f"| `{name}` | {shown} |" in PAGE


def test_every_service_is_in_the_docs() -> None:
    table = PAGE.partition("| service |")[2].partition("\n\n")[0]

    assert set(re.findall(r"`([a-z]+(?:-[12ab])?)`", table)) >= set(SERVICES)


def written(folder: Path, lines: str) -> Path:
    """A compose file with one service that has these lines too."""
    path = folder / "compose.yml"
    path.write_text(
        "networks: {net: }\nsecrets: {}\nservices:\n  one:\n    image: redis:7\n"
        f"    networks: [net]\n    cap_drop: [ALL]\n    {lines}\n"
    )
    return path


def test_key_that_the_tests_would_pass_over_fails_them(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"do not know what to do with \{'sysctls'\}"):
        compose.read(written(tmp_path, "sysctls: {net.core.somaxconn: 1024}"), {})


def test_variables_are_put_in_as_compose_does(tmp_path: Path) -> None:
    path = written(tmp_path, 'environment: {A: "${A:-x}", B: "${B:-}-$$", C: "${C:-c}"}')

    (service,) = compose.read(path, {"C": "", "A": "y"}).services.values()

    assert service.environment == {"A": "y", "B": "-$", "C": "c"}


def test_variable_that_must_be_set_says_so(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="SITE: the name of the host"):
        compose.read(written(tmp_path, 'user: "${SITE:?the name of the host}"'), {})
