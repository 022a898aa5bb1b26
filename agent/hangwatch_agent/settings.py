"""Settings of the agent, and the loader that every settings dataclass of Hangwatch goes through.

One namespace for all commands: a key of another command is valid, an unknown one is an error. A key
`server` is the flag `--server`, the environment variable `HANGWATCH_SERVER` and the TOML key
`server`; a flag wins over the environment, that over the file, that over the default. A secret can
also be read from a file named by `HANGWATCH_<KEY>_FILE` or the TOML key `<key>_file`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import socket
import tomllib
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from hangwatch_agent import probe
from hangwatch_agent.errors import SettingsError

PREFIX = "HANGWATCH_"
# Read by the probe, by `hangwatch run` or by the command line itself; no dataclass holds them.
EXPORTED_KEYS = frozenset({"job", "launch_id", "disable", "config", "run_dir"})
# What the server tells its action command, which may call `hangwatch` in its turn.
TOLD_KEYS = frozenset(
    {
        "advice",
        "attempt",
        "confidence",
        "culprit_nodes",
        "culprit_ranks",
        "exclude_nodes",
        "incident",
        "incident_url",
        "job_id",
        "kind",
    }
)
_TRUE = frozenset(probe.TRUE)
_FALSE = frozenset({"0", "false", "no", "off", ""})
HIDDEN = "********"


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


S = TypeVar("S", bound=_Dataclass)


def default_run_dir() -> Path:
    """`/run/hangwatch` for root, else a folder that belongs to this user alone."""
    return Path(probe.default_run_dir())


def default_state_dir() -> Path:
    """`/var/lib/hangwatch-agent` for root, else in the user's state folder."""
    if os.geteuid() == 0:
        return Path("/var/lib/hangwatch-agent")
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "hangwatch-agent"


def _setting(help: str, why: str, *, secret: bool = False) -> dict[str, object]:
    return {"help": help, "why": why, "secret": secret}


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """What one node service needs to know."""

    server: str = field(
        default="",
        metadata=_setting(
            "address of the server: http(s):// or ws(s)://", "no server can be guessed"
        ),
    )
    token: str = field(
        default="",
        metadata=_setting(
            "text of the token to show the server; an agent's has scope agent and names its node",
            "empty works only against a server that allows it on loopback",
            secret=True,
        ),
    )
    enrol_token: str = field(
        default="",
        metadata=_setting(
            "text of a token that a whole cluster shares, exchanged once for this node's own",
            "empty: the agent has a token already",
            secret=True,
        ),
    )
    state_dir: Path = field(
        default_factory=default_state_dir,
        metadata=_setting(
            "folder in which the agent keeps the token that it was enrolled with",
            "it outlives a restart of the machine, and only the agent's user can read it",
        ),
    )
    node: str = field(
        default_factory=socket.gethostname,
        metadata=_setting("name of this node", "the host name is what schedulers use too"),
    )
    run_dir: Path = field(
        default_factory=default_run_dir,
        metadata=_setting(
            "folder of the probes' records and sockets", "memory-backed and private to the user"
        ),
    )
    adopt: bool = field(
        default=False,
        metadata=_setting(
            "also follow ranks that were started without `hangwatch run`",
            "off, since two agents on one machine would both take them",
        ),
    )
    interval_s: float = field(
        default=1.0,
        metadata=_setting("seconds between heartbeats", "the probe writes once a second"),
    )
    spool_dir: Path | None = field(
        default=None,
        metadata=_setting(
            "folder for captures that the server has not acknowledged",
            "`spool` inside the run dir, so that each agent has its own",
        ),
    )
    spool_max_bytes: int = field(
        default=256 * 1024 * 1024,
        metadata=_setting(
            "size of the spool; the oldest captures are dropped beyond it",
            "room for thousands of captures, little on any node",
        ),
    )
    capture_concurrency: int = field(
        default=4,
        metadata=_setting(
            "py-spy processes at a time", "a node has 8 ranks; more would compete with training"
        ),
    )
    capture_timeout_s: float = field(
        default=10.0,
        metadata=_setting(
            "seconds until a py-spy process is interrupted",
            "0.02 s is usual, 1 s with native frames; ten times that on a loaded node",
        ),
    )
    capture_source: bool = field(
        default=True,
        metadata=_setting(
            "send the source lines that a captured stack of the user's own code stands at",
            "the line says more than its number; off for those to whom their code is a secret",
        ),
    )
    ras_interval_s: float = field(
        default=10.0,
        metadata=_setting(
            "seconds between questions to NCCL RAS, for jobs without the probe; 0 asks never",
            "one question makes every process of the job answer; a hang shows after two",
        ),
    )
    ca_file: Path | None = field(
        default=None,
        metadata=_setting("certificates to trust for https and wss", "the system's own otherwise"),
    )
    log_level: str = field(
        default="info",
        metadata=_setting("debug, info, warning or error", "info is written for operators"),
    )
    log_format: str = field(
        default="text",
        metadata=_setting(
            "text or json: how a line of the log is written", "text is read by people as it is"
        ),
    )

    @property
    def spool(self) -> Path:
        return self.spool_dir or self.run_dir / "spool"


def keys(schema: type[_Dataclass]) -> frozenset[str]:
    """The setting keys of a settings dataclass."""
    return frozenset(item.name for item in _fields(schema))


def load(
    schema: type[S],
    *,
    known: Collection[str],
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
    toml: Path | None,
) -> S:
    """Build `schema` from flags, environment, TOML file and defaults; raise SettingsError.

    `known` are the keys of all other commands; `flags` maps keys to text, None where not given.
    """
    found = _gather(schema, known, flags, environ, toml)
    kinds = typing.get_type_hints(schema)
    values = {
        key: _parsed(value, kinds[key], key, source) for key, (value, source) in found.items()
    }
    return schema(**values)


def sources(
    schema: type[_Dataclass],
    *,
    known: Collection[str],
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
    toml: Path | None,
) -> dict[str, str]:
    """Where each value that is not a default came from: `flag`, `environment`, a file's path."""
    found = _gather(schema, known, flags, environ, toml)
    return {key: source for key, (_, source) in found.items()}


def render(
    settings: _Dataclass, origins: Mapping[str, str] | None = None
) -> list[tuple[str, str, str]]:
    """(key, value, source) of every setting, secrets hidden; `origins` is what `sources` gave."""
    rows = []
    for item in _fields(type(settings)):
        value = getattr(settings, item.name)
        shown = "" if value is None else str(value)
        if item.metadata.get("secret") and shown:
            shown = HIDDEN
        rows.append((item.name, shown, (origins or {}).get(item.name, "default")))
    return rows


def _fields(schema: type[_Dataclass]) -> tuple[dataclasses.Field[Any], ...]:
    return tuple(item for item in dataclasses.fields(schema) if item.init)


def _gather(
    schema: type[_Dataclass],
    known: Collection[str],
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
    toml: Path | None,
) -> dict[str, tuple[object, str]]:
    """Raw value and source per key, the strongest source last to write."""
    secrets = {item.name for item in _fields(schema) if item.metadata.get("secret")}
    own = keys(schema)
    allowed = own | frozenset(known) | EXPORTED_KEYS | TOLD_KEYS
    found: dict[str, tuple[object, str]] = {}
    for layer, spelling in ((_from_toml(toml), _in_file), (_from_environ(environ), _in_environ)):
        for key, (value, source) in layer.items():
            target = _target(key, allowed, source, spelling)
            if target in own:
                is_named = target != key  # the value is the name of the secret's file
                raw = _secret(value, target in secrets, source) if is_named else value
                found[target] = (raw, source)
    for key, flag in flags.items():
        if flag is not None and key in own:
            found[key] = (flag, f"flag --{key.replace('_', '-')}")
    return found


def _from_toml(path: Path | None) -> dict[str, tuple[object, str]]:
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"settings file {path} cannot be read: {error.strerror}; check --config"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {path} is not TOML: {error}") from error
    return {key: (value, f"{key} in {path}") for key, value in table.items()}


def _from_environ(environ: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    return {
        name[len(PREFIX) :].lower(): (value, f"environment {name}")
        for name, value in sorted(environ.items())
        if name.startswith(PREFIX)
    }


def _in_file(key: str) -> str:
    return key


def _in_environ(key: str) -> str:
    return PREFIX + key.upper()


def _target(key: str, allowed: Collection[str], source: str, spelling: Callable[[str], str]) -> str:
    """The setting that `key` sets: itself, or the secret whose file it names."""
    if key in allowed:
        return key
    if key.endswith("_file") and key[: -len("_file")] in allowed:
        return key[: -len("_file")]
    near = difflib.get_close_matches(key, sorted(allowed), n=1)
    hint = f" (did you mean {spelling(near[0])}?)" if near else ""
    raise SettingsError(f"{source}: no such setting{hint}; `hangwatch config` lists all settings")


def _secret(file: object, is_secret: bool, source: str) -> str:
    if not is_secret:
        raise SettingsError(f"{source}: only a secret can be read from a file")
    path = Path(str(file))
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{source}: the secret's file {path} cannot be read: {error}"
        ) from error


def _parsed(value: object, kind: Any, key: str, source: str) -> object:
    """`value` as the field's type; `kind` is Any because type hints are (a class or a union)."""
    options = [kind]
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        if value == "":
            return None
    (target,) = options
    try:
        return _converted(value, target)
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"{source}: {key} must be {_noun(target)}, not {str(value)[:60]!r}"
        ) from error


def _converted(value: object, target: type) -> object:
    if target is bool:
        return _flag(value)
    if target is str and not isinstance(value, str):
        raise TypeError("text is quoted in TOML")
    if target in (int, float):
        if isinstance(value, bool):
            raise TypeError("a number is neither true nor false")
        return _number(str(value), target)
    if target is Path:
        return Path(str(value)).expanduser()
    return target(value)


def _number(text: str, target: type) -> int | float:
    """All our numbers count or measure something; nan would make every comparison false."""
    number = int(text) if target is int else float(text)
    if not 0 <= number < math.inf:
        raise ValueError(text)
    return number


def _flag(value: object) -> bool:
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(text)


def _noun(target: type) -> str:
    return {
        int: "a whole number from 0",
        float: "a number from 0",
        bool: "true or false",
        str: "text",
        Path: "a path",
    }.get(target, target.__name__)
