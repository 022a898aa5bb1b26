"""Writes the tables of the reference pages from the code: python docs/reference/generate.py

Everything between `<!-- generated: NAME -->` and `<!-- end -->` is replaced, the prose around it is
written by hand. A test fails while a page is not what this program would write. It starts no server
and needs the packages of the extra `server`.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import commands
import rest
from prometheus_client import Counter, Gauge, Histogram
from tables import table

from hangwatch_agent import settings as agent_settings
from hangwatch_agent.settings import AgentSettings
from hangwatch_server import metrics
from hangwatch_server.demo import cases
from hangwatch_server.settings import ServerSettings
from hangwatch_server.settings.alerts import AlertSettings
from hangwatch_server.settings.detection import DetectionLimits

FOLDER = Path(__file__).resolve().parent
MARKED = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# Settings


def settings_table(schema: type[Any], names: frozenset[str]) -> Iterator[str]:
    rows = (
        (
            f"`{item.name}`<br>`{agent_settings.PREFIX}{item.name.upper()}`<br>`{flag(item.name)}`",
            default(item),
            str(item.metadata["help"]) + (" (a secret)" if item.metadata.get("secret") else ""),
            str(item.metadata["why"]),
        )
        for item in dataclasses.fields(schema)
        if item.name in names
    )
    yield from table(("name, environment, flag", "default", "what", "why this default"), rows)


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def default(item: dataclasses.Field[Any]) -> str:
    """The default as a reader of any machine sees it."""
    if item.default_factory is not dataclasses.MISSING:
        known = {"gethostname": "the host name"}
        made = item.default_factory
        return known.get(made.__name__) or str(made.__doc__).strip().rstrip(".")
    if item.default in (None, ""):
        return "none"
    return f"`{str(item.default).lower() if isinstance(item.default, bool) else item.default}`"


def settings_names(schema: type[Any]) -> frozenset[str]:
    return frozenset(item.name for item in dataclasses.fields(schema))


# Metrics


def metrics_table() -> Iterator[str]:
    yield from table(("metric", "type", "labels", "what"), map(metric_row, all_metrics()))


def all_metrics() -> Iterator[Counter | Gauge | Histogram]:
    for value in vars(metrics).values():
        if isinstance(value, Counter | Gauge | Histogram):
            yield value


def metric_row(metric: Counter | Gauge | Histogram) -> Sequence[str]:
    (described,) = metric.describe()
    name = described.name + ("_total" if described.type == "counter" else "")
    labels = ", ".join(f"`{label}`" for label in metric._labelnames) or "none"
    return f"`{name}`", described.type, labels, described.documentation


# Cases of the demo


def cases_table() -> Iterator[str]:
    rows = (
        (
            f"`{case.name}`",
            case.title,
            f"`{case.family}`",
            f"`{case.state}`, `{case.kind}`",
            case.culprits or "none",
            f"`{case.condition}`" if case.condition else "",
            f"`{case.evidence}`",
        )
        for case in cases.load()
    )
    heads = ("case", "what happens", "family", "verdict", "culprits", "condition", "evidence")
    yield from table(heads, rows)


# Pages

BLOCKS: dict[str, Callable[[], Iterator[str]]] = {
    "server-settings": lambda: settings_table(
        ServerSettings,
        settings_names(ServerSettings)
        - settings_names(DetectionLimits)
        - settings_names(AlertSettings),
    ),
    "alert-settings": lambda: settings_table(ServerSettings, settings_names(AlertSettings)),
    "detection-settings": lambda: settings_table(ServerSettings, settings_names(DetectionLimits)),
    "agent-settings": lambda: settings_table(AgentSettings, settings_names(AgentSettings)),
    "api": rest.api_sections,
    "cli": commands.cli_sections,
    "check": commands.check_table,
    "metrics": metrics_table,
    "cases": cases_table,
}


def updated(text: str) -> str:
    """The page with its marked blocks written anew."""

    def block(found: re.Match[str]) -> str:
        body = "\n".join(BLOCKS[found[2]]()).strip()
        return f"{found[1]}\n{body}\n\n{found[3]}"

    return MARKED.sub(block, text)


def main() -> int:
    for page in sorted(FOLDER.glob("*.md")):
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
