"""What each image of the compose file starts, and where the same programs lie on this machine.

Ours are read from the Dockerfile, and their programs are this checkout's; with DEPLOY_IMAGES=FOLDER
in the environment they are what was built: FOLDER/server, FOLDER/agent and FOLDER/demo are the
roots. Of the three that others make, what their entry points and settings do is written down here;
`postgres.sh` is the only one that does more than start a program.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME = "/opt/hangwatch"  # as in the images; here it holds this checkout and this Python
_COMMANDS = ("hangwatch", "torchrun")


@dataclass(frozen=True, slots=True)
class Image:
    """What a container gets before the compose file has its say."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = "root"
    folder: str = "/"
    root: Path = Path("/")  # here
    mounts: Mapping[str, Path] = field(default_factory=dict)  # inside -> here, all read-only
    scripts: Mapping[str, str] = field(default_factory=dict)  # path inside -> text
    owned: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # folder -> user, mode


def missing() -> list[str]:
    """The programs of others that this machine lacks."""
    found = {
        "postgres": next(Path("/usr/lib/postgresql").glob("*/bin/postgres"), None),
        "redis-server": shutil.which("redis-server", path=PATH),
        "caddy": caddy(),
        "wget": shutil.which("wget", path=PATH),
    }
    return [name for name, path in found.items() if path is None]


def caddy() -> Path | None:
    """Beside Python, where tests/support/packages.sh puts it, or where the system has it."""
    found = shutil.which("caddy", path=f"{Path(sys.executable).parent}:{PATH}")
    return Path(found) if found else None


def of_others(name: str) -> Image:
    """The image `name:tag` of a registry."""
    kind = name.partition(":")[0]
    if kind == "postgres":
        folder = next(Path("/usr/lib/postgresql").glob("*/bin"))
        return Image(
            entrypoint=("/usr/local/bin/docker-entrypoint.sh",),
            command=("postgres",),
            environment={"PATH": f"{folder}:{PATH}", "PGDATA": "/var/lib/postgresql/data"},
            scripts={"/usr/local/bin/docker-entrypoint.sh": (HERE / "postgres.sh").read_text()},
            owned={"/var/lib/postgresql/data": ("postgres", 0o700)},
        )
    if kind == "redis":
        return Image(environment={"PATH": PATH}, folder="/data")
    assert kind == "caddy", f"the tests do not know what {name} starts"
    program = caddy()
    assert program is not None
    return Image(
        command=("caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"),
        environment={"PATH": PATH, "XDG_CONFIG_HOME": "/config", "XDG_DATA_HOME": "/data"},
        mounts={"/usr/bin/caddy": program},
    )


def of_ours(target: str) -> Image:
    """A stage of the Dockerfile, as its last instructions say."""
    stages = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    (stage,) = (text for text in stages if text.partition("\n")[0].endswith(f" AS {target}"))
    lines = stage.replace("\\\n", " ").splitlines()
    said = dict(line.split(" ", 1) for line in lines[1:] if line and not line.startswith("#"))
    environment = {"PATH": PATH}
    for line in lines:
        if line.startswith("ENV "):
            for name, value in re.findall(r"(\w+)=(\S+)", line):
                environment[name] = value.replace("$PATH", PATH)
    described = Image(
        entrypoint=tuple(json.loads(said["ENTRYPOINT"])),
        command=tuple(json.loads(said.get("CMD", "[]"))),
        environment=environment,
        user=said.get("USER", "root"),
        folder=said.get("WORKDIR", "/"),
        owned={
            path: ("root", int(mode, 8))
            for mode, path in re.findall(r"install --directory --mode=(\d+) (\S+)", stage)
        },
    )
    if built := os.environ.get("DEPLOY_IMAGES"):
        return dataclasses.replace(described, root=Path(built, target).resolve())
    return _from_checkout(described, stage)


def _from_checkout(image: Image, stage: str) -> Image:
    """Instead of a wheel that is installed: this checkout, and the Python that runs the tests."""
    programs = re.search(r"^COPY tests/programs (\S+)$", stage, re.MULTILINE)
    return dataclasses.replace(
        image,
        mounts={
            f"{HOME}/python": Path(sys.prefix),
            # Which is a virtual environment of this one, perhaps in somebody's closed home.
            sys.base_prefix: Path(sys.base_prefix),
            f"{HOME}/source": ROOT,
            **({programs[1]: ROOT / "tests" / "programs"} if programs else {}),
        },
        scripts={f"{HOME}/bin/{name}": _script(name) for name in _COMMANDS},
    )


def _script(command: str) -> str:
    module = {"hangwatch": "hangwatch_agent", "torchrun": "torch.distributed.run"}[command]
    path = ":".join(f"{HOME}/source/{folder}" for folder in ("server", "agent"))
    return (
        "#!/bin/sh\n"
        f'export PYTHONPATH="{path}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
        f'exec {HOME}/python/bin/python -m {module} "$@"\n'
    )
