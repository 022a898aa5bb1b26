"""Settings: sources, precedence, secrets in files, and errors that name the likely key."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hangwatch_agent import settings
from hangwatch_agent.errors import SettingsError
from hangwatch_agent.settings import AgentSettings


@dataclass(frozen=True, kw_only=True)
class Sample:
    port: int = 8080
    limit_s: float = 10.0
    open: bool = False
    folder: Path | None = None
    name: str = field(default="x", metadata={"help": "h", "why": "w"})
    password: str = field(default="", metadata={"help": "h", "why": "w", "secret": True})


def load(
    flags: dict[str, str | None] | None = None,
    environ: dict[str, str] | None = None,
    toml: Path | None = None,
) -> Sample:
    return settings.load(
        Sample, known={"server"}, flags=flags or {}, environ=environ or {}, toml=toml
    )


def test_flag_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = tmp_path / "hangwatch.toml"
    file.write_text('port = 1\nlimit_s = 2\nname = "file"\n')

    found = load({"port": "3", "name": None}, {"HANGWATCH_PORT": "2", "HANGWATCH_NAME": "e"}, file)

    assert (found.port, found.limit_s, found.name, found.open) == (3, 2.0, "e", False)


def test_unknown_environment_key_names_the_nearest_setting() -> None:
    with pytest.raises(SettingsError, match=r"HANGWATCH_PROT.*did you mean HANGWATCH_PORT\?"):
        load(environ={"HANGWATCH_PROT": "1"})


def test_unknown_file_key_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "hangwatch.toml"
    file.write_text("lmit_s = 2\n")

    with pytest.raises(SettingsError, match="did you mean limit_s"):
        load(toml=file)


def test_key_of_another_command_or_of_the_probe_is_valid() -> None:
    environ = {"HANGWATCH_SERVER": "http://x", "HANGWATCH_DISABLE": "1", "HANGWATCH_JOB": "gpt"}

    assert load(environ=environ) == Sample()


def test_secret_is_read_from_the_file_that_the_environment_names(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2\n")

    assert load(environ={"HANGWATCH_PASSWORD_FILE": str(file)}).password == "hunter2"


def test_only_a_secret_can_be_read_from_a_file() -> None:
    with pytest.raises(SettingsError, match="only a secret"):
        load(environ={"HANGWATCH_PORT_FILE": "/etc/hostname"})


def test_missing_secret_file_is_named() -> None:
    with pytest.raises(SettingsError, match="/nonexistent/secret"):
        load(environ={"HANGWATCH_PASSWORD_FILE": "/nonexistent/secret"})


@pytest.mark.parametrize(
    ("key", "text", "noun"),
    [
        ("PORT", "many", "whole number"),
        ("LIMIT_S", "soon", "number"),
        ("LIMIT_S", "nan", "number"),
        ("LIMIT_S", "inf", "number"),
        ("PORT", "-1", "whole number from 0"),
        ("OPEN", "maybe", "true or"),
    ],
)
def test_value_of_the_wrong_kind_is_refused_with_its_source(key: str, text: str, noun: str) -> None:
    with pytest.raises(SettingsError, match=f"HANGWATCH_{key}.*{noun}"):
        load(environ={f"HANGWATCH_{key}": text})


def test_empty_text_unsets_an_optional_setting() -> None:
    assert load({"folder": ""}).folder is None
    assert load({"folder": "/x"}).folder == Path("/x")


def test_rendering_hides_secrets_and_tells_sources() -> None:
    environ = {"HANGWATCH_PASSWORD": "hunter2"}
    origins = settings.sources(Sample, known=(), flags={}, environ=environ, toml=None)

    rows = settings.render(load(environ=environ), origins)

    assert ("password", settings.HIDDEN, "environment HANGWATCH_PASSWORD") in rows
    assert ("port", "8080", "default") in rows
    assert "hunter2" not in str(rows)


def test_every_agent_setting_says_what_it_is_and_why_its_default() -> None:
    for item in AgentSettings.__dataclass_fields__.values():
        assert item.metadata["help"]
        assert item.metadata["why"]


def test_spool_lies_in_the_run_dir_unless_set() -> None:
    assert AgentSettings(run_dir=Path("/r")).spool == Path("/r/spool")
    assert AgentSettings(run_dir=Path("/r"), spool_dir=Path("/s")).spool == Path("/s")
