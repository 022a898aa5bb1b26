"""Holds the house rules of imports: which room may know which. Reads source text only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    **{path: ROOT / "server" for path in (ROOT / "server").rglob("*.py")},
    **{path: ROOT / "agent" for path in (ROOT / "agent").rglob("*.py")},
}
STDLIB_ONLY_BUT = {"torch", "hangwatch", "hangwatch_agent.probe"}
PURE_ROOMS = ("detect", "diagnose", "offline", "stacks")
INPUT_OUTPUT = {
    "asyncio", "fastapi", "httpx", "os", "pathlib", "psycopg", "random", "redis", "socket",
    "sqlalchemy", "starlette", "subprocess", "threading", "time",
}  # fmt: skip
GROUND = {
    "assets", "background", "clock", "durations", "errors", "garbage", "kernel_waits", "logs",
    "metrics", "model", "op_names", "outlines", "patterns", "places", "process_states", "ranges",
    "settings", "texts", "tracing",
}  # fmt: skip
FIRST_FLOOR = {"board", "detect", "diagnose", "stacks", "db", "bus"}
DIAGNOSE_ROOMS = ("pending", "calls", "waiting", "blame", "telling")
DIAGNOSE_GROUND = {
    "bounds", "coverage", "hardware", "process", "settings", "standing", "survey",
}  # fmt: skip
# Files that ranks left behind are read by the agent's own readers, and in this room alone: they
# trust no file, and a second set of them would not be as careful (docs/decisions/0012).
OFFLINE_ROOM = "offline"
READERS = {
    "hangwatch_agent.dumps", "hangwatch_agent.dumps.reading", "hangwatch_agent.dumps.reading.Dump",
    "hangwatch_agent.errors", "hangwatch_agent.errors.AgentError",
    "hangwatch_agent.errors.DumpError", "hangwatch_agent.ras", "hangwatch_agent.ras.answer",
    "hangwatch_agent.ras.status", "hangwatch_agent.ras.status.Status", "hangwatch_agent.ras.text",
    "hangwatch_agent.stacks",
}  # fmt: skip
LIVING = {
    "actions",
    "alerts",
    "offline",
    "relay",
    "incidents",
    "captures",
    "ingest",
    "watch",
    "security",
}
DOORS = {
    "offline_command",
    "quotas",
    "ready",
    "uploads",
    "wiring",
    "api",
    "pages",
    "app",
    "db_command",
    "services",
    "lifespan",
    "replica",
    "serve",
    "protocol",
    "tls",
    "demo",
    "simulate",
}
FLOOR = {
    **dict.fromkeys(GROUND, 0),
    **dict.fromkeys(FIRST_FLOOR, 1),
    **dict.fromkeys(LIVING, 2),
    **dict.fromkeys(DOORS, 3),
}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCES[path]).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every module named in an import; for `from a import b` both `a` and `a.b`."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base_name = ".".join([*base, *([node.module] if node.module else [])])
            names |= {base_name} | {f"{base_name}.{alias.name}" for alias in node.names}
    return names


def files_of(prefix: str) -> list[Path]:
    return sorted(
        path
        for path in SOURCES
        if module_name(path) == prefix or module_name(path).startswith(prefix + ".")
    )


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "hangwatch_server" and len(parts) > 1 else ""


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", files_of("hangwatch_server"), ids=short)
def test_server_knows_only_the_wire_of_the_agent(path: Path) -> None:
    foreign = {
        name
        for name in imported(path)
        if name.startswith("hangwatch_agent.") and not name.startswith("hangwatch_agent.wire")
    }
    if room(module_name(path)) == OFFLINE_ROOM:
        foreign -= READERS

    assert not foreign


@pytest.mark.parametrize("path", files_of("hangwatch_agent"), ids=short)
def test_agent_knows_no_server_except_at_the_one_entry_point(path: Path) -> None:
    if module_name(path) == "hangwatch_agent.cli":
        return

    assert not {name for name in imported(path) if name.startswith("hangwatch_server")}


@pytest.mark.parametrize("path", files_of("hangwatch_agent.probe"), ids=short)
def test_probe_imports_only_the_standard_library_and_torch(path: Path) -> None:
    import sys

    roots = {name.split(".")[0] for name in imported(path) if name}

    assert not {
        root
        for root in roots
        if root not in sys.stdlib_module_names and root not in {"torch", "hangwatch", "__future__"}
        and root != "hangwatch_agent"
    }  # fmt: skip
    assert not {
        name
        for name in imported(path)
        if name.startswith("hangwatch_agent.") and not name.startswith("hangwatch_agent.probe")
    }


@pytest.mark.parametrize("name", PURE_ROOMS)
def test_pure_rooms_do_no_input_or_output(name: str) -> None:
    for path in files_of(f"hangwatch_server.{name}"):
        roots = {found.split(".")[0] for found in imported(path)}

        assert not roots & INPUT_OUTPUT, short(path)


@pytest.mark.parametrize(
    "path",
    [p for p in files_of("hangwatch_server") if room(module_name(p)) != "db"],
    ids=short,
)
def test_sql_lives_in_db(path: Path) -> None:
    assert not {name for name in imported(path) if name.split(".")[0] in {"sqlalchemy", "psycopg"}}


@pytest.mark.parametrize("path", files_of("hangwatch_server"), ids=short)
def test_arrows_only_run_down(path: Path) -> None:
    here = room(module_name(path))
    if not here:
        return
    assert here in FLOOR, f"{here} has no floor: add it to this test's lists"

    for name in imported(path):
        there = room(name)
        if there in FLOOR and there != here:
            assert FLOOR[there] <= FLOOR[here], f"{here} imports {there}, which lies above it"


@pytest.mark.parametrize("name", sorted(FIRST_FLOOR))
def test_rooms_of_the_first_floor_do_not_know_each_other(name: str) -> None:
    for path in files_of(f"hangwatch_server.{name}"):
        others = {room(found) for found in imported(path)} & (FIRST_FLOOR - {name})

        assert not others, short(path)


@pytest.mark.parametrize("path", files_of("hangwatch_server.diagnose"), ids=short)
def test_a_room_of_diagnose_knows_only_the_ground_and_the_rooms_before_it(path: Path) -> None:
    here = (*module_name(path).split("."), "")[2]
    if here in DIAGNOSE_ROOMS:
        may_know = DIAGNOSE_GROUND | set(DIAGNOSE_ROOMS[: DIAGNOSE_ROOMS.index(here) + 1])
    elif here in DIAGNOSE_GROUND:
        may_know = DIAGNOSE_GROUND
    else:
        return

    known = {
        name.split(".")[2]
        for name in imported(path)
        if name.startswith("hangwatch_server.diagnose.")
    }

    assert known <= may_know
