"""Rules and dashboard ask for metrics that the server has, and the rules do what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hangwatch_server import metrics

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
DASHBOARD = DEPLOY / "grafana" / "hangwatch.json"
PROMTOOL = shutil.which(
    "promtool", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
)
NAME = re.compile(r"\b(?:hangwatch|process)_[a-z_]+\b")
# Of Prometheus itself.
OTHERS = {"up"}


def known() -> dict[str, set[str]]:
    """Every series that the server offers, with the labels that its samples can have."""
    found: dict[str, set[str]] = {}
    for line in metrics.render().decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            found[name] = set()
            if kind == "histogram":
                found |= {f"{name}_bucket": {"le"}, f"{name}_sum": set(), f"{name}_count": set()}
    for value in vars(metrics).values():
        if isinstance(value, metrics.Counter | metrics.Gauge):
            name = value._name + ("_total" if isinstance(value, metrics.Counter) else "")
            found[name] = set(value._labelnames)
    return found


def expressions() -> list[str]:
    rules = re.findall(r"^ +expr: (.+)$", RULES.read_text(), re.MULTILINE)
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(rules) > 10
    assert len(asked) > 20
    return [*rules, *asked]


@pytest.mark.parametrize("expression", expressions())
def test_expression_asks_for_metrics_and_labels_that_there_are(expression: str) -> None:
    series = known()
    names = set(NAME.findall(re.sub(r"\b(?:cluster|instance):\w+(?::\w+)?", "", expression)))
    labels = set(re.findall(r"(\w+)=~?\"", expression))
    for grouped in re.findall(r"by \(([^)]*)\)", expression):
        labels |= set(re.split(r",\s*", grouped))

    assert names <= set(series), names - set(series)
    own = set().union(*(series[name] for name in names)) if names else {"state", "link"}
    assert labels <= own | {"job", "instance", "le"}


def test_recorded_series_are_used_as_they_are_recorded() -> None:
    text = RULES.read_text()
    recorded = set(re.findall(r"record: (\S+)", text))

    assert set(re.findall(r"\b(?:cluster|instance):\w+(?::\w+)?", text)) == recorded


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    alerts = RULES.read_text().split("- alert: ")[1:]

    for alert in alerts:
        for part in ("severity: ", "summary: ", "description: "):
            assert part in alert, alert.split()[0]


def test_no_series_has_a_label_for_each_rank_or_job() -> None:
    labels = set().union(*known().values())

    assert not labels & {"rank", "job", "pid", "incident", "node"}


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        own = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not own & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= own


def promtool(*arguments: str, given: bytes = b"") -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, *arguments], cwd=RULES.parent, input=given, capture_output=True, timeout=60
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="no promtool here: tests/support/packages.sh brings it"
)


@needs_promtool
def test_rules_are_taken_by_prometheus_and_fire_when_they_should() -> None:
    promtool("check", "rules", "rules.yml")
    promtool("test", "rules", "rules_test.yml")


@needs_promtool
def test_metrics_follow_the_conventions_of_prometheus() -> None:
    promtool("check", "metrics", given=metrics.render())


@needs_promtool
def test_scrape_configuration_is_taken_by_prometheus(tmp_path: Path) -> None:
    text = RULES.with_name("prometheus.yml").read_text()
    shutil.copy(RULES, tmp_path)
    (tmp_path / "hangwatch.token").touch()
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", ""))

    promtool("check", "config", str(tmp_path / "prometheus.yml"))
