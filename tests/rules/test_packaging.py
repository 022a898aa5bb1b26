"""Holds the wheel, the images and the compose file to what the program needs at run time.

The wheel is built for real, as a user's pip would. No image is built: there is no Docker in the
tests, so Dockerfile and compose file are read as text. tests/deploy starts what they say.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from hangwatch_agent import cli
from hangwatch_agent import settings as agent_settings
from hangwatch_agent.settings import AgentSettings
from hangwatch_server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = (ROOT / "docker-compose.yml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def files_of(folder: str) -> set[str]:
    """Files of a folder, relative to it; caches left out."""
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {
        str(path.relative_to(ROOT / folder)) for path in found if "__pycache__" not in path.parts
    }


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        *WHEEL["force-include"].items(),
        *((package, Path(package).name) for package in WHEEL["packages"]),
    ],
)
def test_wheel_holds_every_file_of(source: str, inside: str, wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())

    assert files_of(source)
    assert not {name for name in files_of(source) if f"{inside}/{name}" not in names}


def test_wheel_holds_what_the_program_looks_for_beside_its_modules() -> None:
    assert set(WHEEL["force-include"]) == {"web", "migrations", "tests/programs"}


def test_wheel_holds_the_licences_and_nothing_of_ours_alone(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()

    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert any(
        name.startswith("hangwatch_server/_web/vendor/") and "LICENSE" in name for name in names
    )
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "hangwatch", "hangwatch_agent", "hangwatch_server",
    }  # fmt: skip


def test_wheel_has_the_one_command(wheel: zipfile.ZipFile) -> None:
    (entry_points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))

    assert "hangwatch = hangwatch_agent.cli:main" in wheel.read(entry_points).decode()


def test_dockerfile_copies_what_the_wheel_is_made_of() -> None:
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
        for word in line.split()
    }
    needed = {"pyproject.toml", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}
    needed |= set(WHEEL["force-include"]) | {name.partition("/")[0] for name in WHEEL["packages"]}

    assert copied == needed


def test_docker_context_holds_what_the_dockerfile_copies() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()

    assert ignored[0] == "*"
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for word in line.split():
            assert f"!{word}" in ignored


def test_server_image_is_the_default_and_does_not_run_as_root() -> None:
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]

    assert stages[-1].startswith("${BASE} AS server\n")
    # By number: Kubernetes cannot tell from a name that it is not root's.
    assert re.search(r"^USER 10042:10042$", stages[-1], re.MULTILINE)
    assert f"\nEXPOSE {ServerSettings().port}\n" in stages[-1]


def test_extras_of_the_images_exist() -> None:
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", DOCKERFILE, re.MULTILINE)

    assert "server" in extras.split(",")
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])


def test_demo_image_has_the_torch_that_the_tests_run_with() -> None:
    (in_makefile,) = re.findall(r"^TORCH \?= (\S+)$", MAKEFILE, re.MULTILINE)
    (in_image,) = re.findall(r"^ARG TORCH=(\S+)$", DOCKERFILE, re.MULTILINE)
    (in_compose,) = re.findall(r"TORCH: \$\{TORCH:-(\S+)\}$", COMPOSE, re.MULTILINE)

    assert in_image == in_compose == in_makefile


@pytest.mark.parametrize("text", [DOCKERFILE, COMPOSE], ids=["Dockerfile", "docker-compose.yml"])
def test_every_setting_that_is_set_exists(text: str) -> None:
    schemas = (ServerSettings, AgentSettings)
    known = {key for schema in schemas for key in agent_settings.keys(schema)}
    known |= {f"{key}_file" for key in known}
    # Variables of the compose file itself; a test of tests/unit/deploy has them in the docs.
    known |= {name.lower() for name in re.findall(r"\$\{HANGWATCH_([A-Z_]+)", text)}

    assert {name.lower() for name in re.findall(r"HANGWATCH_([A-Z_]+)", text)} <= known


def test_commands_of_the_images_exist() -> None:
    commands = re.findall(r'CMD \["(?:hangwatch", ")?(\w+)"\]$', DOCKERFILE, re.MULTILINE)

    assert set(commands) == {"agent", "ready", "serve"}
    for command in commands:
        assert f"    {command} " in cli.parser().format_help()
