"""Reads docker-compose.yml into services, as far as the tests start them: what they do not know is
an error, so that nothing in the file can be passed over.

Not a replacement of compose: one file, no networks of drivers, no ranges of ports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::([-?])([^}]*))?\}|(\$))")
_DURATION = re.compile(r"^(\d+)(ms|s|m|h)$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

_ACTED_ON = {
    "build", "image", "command", "entrypoint", "environment", "secrets", "networks", "volumes",
    "tmpfs", "user", "pid", "cap_add", "cap_drop", "read_only", "security_opt", "depends_on",
    "healthcheck", "ports", "profiles", "restart", "pull_policy",
}  # fmt: skip
# Of the engine, not of the processes: log files, a reaper as pid 1, sizes, and patience at the end.
_OF_THE_ENGINE = {"logging", "init", "shm_size", "stop_grace_period"}


@dataclass(frozen=True, slots=True)
class Health:
    test: tuple[str, ...]
    interval_s: float
    timeout_s: float
    retries: int
    start_period_s: float


@dataclass(frozen=True, slots=True)
class Volume:
    source: str  # a name, or a path that begins with a point
    target: str
    is_read_only: bool

    @property
    def is_file(self) -> bool:
        return self.source.startswith(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service, with the words of the file."""

    name: str
    image: str
    target: str  # of the Dockerfile; "" for an image of others
    command: tuple[str, ...] | None
    entrypoint: tuple[str, ...] | None
    environment: Mapping[str, str]
    secrets: tuple[str, ...]
    networks: tuple[str, ...]
    volumes: tuple[Volume, ...]
    tmpfs: tuple[str, ...]
    user: str
    pid_of: str  # the service whose processes it shares, "" for its own
    capabilities: tuple[str, ...]
    is_read_only: bool
    has_no_new_privileges: bool
    depends_on: Mapping[str, str]  # service -> condition
    health: Health | None
    ports: tuple[tuple[str, int, int], ...]  # address and port outside, port inside
    profiles: tuple[str, ...]
    is_restarted: bool


@dataclass(frozen=True, slots=True)
class Project:
    """A whole file; `subnets` has the networks that are given one."""

    services: Mapping[str, Service]
    networks: tuple[str, ...]
    subnets: Mapping[str, str]
    secrets: Mapping[str, Path]


def read(path: Path, variables: Mapping[str, str], profiles: Sequence[str] = ()) -> Project:
    """The services of these profiles, and of none; variables as `docker compose` puts them in."""
    document = _filled(yaml.safe_load(path.read_text()), variables)
    known = {"services", "networks", "secrets", "volumes"}
    assert {key for key in document if not key.startswith("x-")} <= known
    targets = _targets(document["services"])
    services = {
        name: _service(name, body, targets.get(body["image"], ""))
        for name, body in document["services"].items()
    }
    networks = {name: body or {} for name, body in document["networks"].items()}
    return Project(
        {
            name: service
            for name, service in services.items()
            if not service.profiles or set(service.profiles) & set(profiles)
        },
        tuple(networks),
        {name: _subnet(body) for name, body in networks.items() if "ipam" in body},
        {name: path.parent / body["file"] for name, body in document["secrets"].items()},
    )


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    return _VARIABLE.sub(lambda match: _of(match, variables), value) if _is_text(value) else value


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _of(match: re.Match[str], variables: Mapping[str, str]) -> str:
    name, kind, text, dollar = match.groups()
    if dollar:
        return "$"
    found = variables.get(name, "")
    assert found or kind != "?", f"{name}: {text}"
    return found or (text if kind == "-" else "")


def _targets(services: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Image to the stage of the Dockerfile, by the one service that builds it."""
    found: dict[str, str] = {}
    for body in services.values():
        if "build" in body:
            assert body["image"] not in found, f"{body['image']} is built twice, which is a race"
            found[body["image"]] = body["build"]["target"]
    for name, body in services.items():
        is_ours = body["image"] in found
        assert is_ours == (body.get("pull_policy") == "never"), f"{name} may pull another's image"
    return found


def _service(name: str, body: Mapping[str, Any], target: str) -> Service:
    unknown = set(body) - _ACTED_ON - _OF_THE_ENGINE
    assert not unknown, f"{name}: the tests do not know what to do with {unknown}"
    assert body.get("cap_drop") == ["ALL"], f"{name} keeps capabilities that it does not name"
    return Service(
        name=name,
        image=body["image"],
        target=target,
        command=_words(body.get("command")),
        entrypoint=_words(body.get("entrypoint")),
        environment={key: str(value) for key, value in body.get("environment", {}).items()},
        secrets=tuple(body.get("secrets", ())),
        networks=tuple(body["networks"]),
        volumes=tuple(map(_volume, body.get("volumes", ()))),
        tmpfs=tuple(body.get("tmpfs", ())),
        user=str(body.get("user", "")),
        pid_of=_pid_of(body.get("pid", "")),
        capabilities=tuple(body.get("cap_add", ())),
        is_read_only=bool(body.get("read_only")),
        has_no_new_privileges="no-new-privileges:true" in body.get("security_opt", ()),
        depends_on={key: item["condition"] for key, item in body.get("depends_on", {}).items()},
        health=_health(body.get("healthcheck", {})),
        ports=tuple(map(_port, body.get("ports", ()))),
        profiles=tuple(body.get("profiles", ())),
        is_restarted=body.get("restart", "no") == "unless-stopped",
    )


def _words(value: Any) -> tuple[str, ...] | None:
    assert value is None or isinstance(value, list), "write commands as lists: no shell is in sight"
    return None if value is None else tuple(map(str, value))


def _volume(text: str) -> Volume:
    source, target, *options = text.split(":")
    assert options in ([], ["ro"]), text
    return Volume(source, target, options == ["ro"])


def _pid_of(text: str) -> str:
    kind, _, name = text.partition(":")
    assert not text or kind == "service", text
    return name


def _port(text: str) -> tuple[str, int, int]:
    address, outside, inside = text.split(":")
    return address, int(outside), int(inside)


def _subnet(body: Mapping[str, Any]) -> str:
    (found,) = body["ipam"]["config"]
    return str(found["subnet"])


def _health(body: Mapping[str, Any]) -> Health | None:
    if not body or body.get("disable"):
        return None
    kind, *words = body["test"]
    test = ("sh", "-c", *words) if kind == "CMD-SHELL" else tuple(words)
    return Health(
        test,
        _seconds(body["interval"]),
        _seconds(body["timeout"]),
        int(body["retries"]),
        _seconds(body.get("start_period", "0s")),
    )


def _seconds(text: str) -> float:
    match = _DURATION.match(text)
    assert match, text
    return int(match[1]) * _SECONDS[match[2]]
