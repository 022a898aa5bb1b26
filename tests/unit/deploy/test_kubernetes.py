"""The manifests against Kubernetes' own schemas, and against what server and agent need.

No cluster runs here: what a schema cannot say (a secret's key, a port's name) is looked up by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from hangwatch_agent import settings as agent_settings
from hangwatch_agent.settings import AgentSettings
from hangwatch_server.settings import ServerSettings

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
BASE = FOLDER / "base"
EXAMPLES = [*sorted((FOLDER / "examples").glob("*.yaml")), FOLDER / "sidecar" / "job.yaml"]
# Of both ends: what is deprecated, and what is not there yet.
VERSIONS = ("1.29", "1.37")
POWERS = {"SYS_PTRACE", "DAC_OVERRIDE", "SYS_CHROOT", "SETUID", "SETGID", "KILL"}

Manifest = dict[str, Any]


def manifests(path: Path) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def base() -> list[Manifest]:
    """What `kubectl apply --kustomize` would apply."""
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    assert {path.name for path in BASE.glob("*.yaml")} == {"kustomization.yaml", *listed}
    return [document for name in listed for document in manifests(BASE / name)]


def one(kind: str, name: str) -> Manifest:
    (found,) = (
        item for item in base() if item["kind"] == kind and item["metadata"]["name"] == name
    )
    return found


def pods(value: object) -> Iterator[Manifest]:
    """Every pod's spec, however deep in a job of another kind."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


ALL = [*base(), *(document for path in EXAMPLES for document in manifests(path))]
PODS = [pod for document in ALL for pod in pods(document)]
SERVER, AGENT = one("Deployment", "server"), one("DaemonSet", "agent")
AGENTS = [
    container for pod in PODS for container in containers(pod) if container["name"] == "agent"
]


def title(value: Manifest) -> str:
    return f"{value['kind']} {value['metadata']['name']}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", ALL, ids=title)
def test_manifest_fits_the_schema_of_kubernetes(document: Manifest, version: str) -> None:
    if document["kind"] in ("JobSet", "PyTorchJob"):  # of operators: their pods are Kubernetes' own
        (pod,) = pods(document)
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod}

    kubernetes_validate.validate(document, version, strict=True)


def test_kustomization_takes_every_image_that_is_ours() -> None:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["images"]
    used = {item["image"] for pod in pods(base()) for item in containers(pod)}

    assert used == {image["name"] for image in listed}


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][0]["name"])
def test_what_a_pod_mounts_and_names_is_there(pod: Manifest) -> None:
    volumes = {volume["name"] for volume in pod.get("volumes", ())}
    maps = {item["metadata"]["name"] for item in base() if item["kind"] == "ConfigMap"}

    for container in containers(pod):
        mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
        ports = {port["name"] for port in container.get("ports", ())}
        probes = (container.get(f"{kind}Probe") for kind in ("startup", "readiness", "liveness"))
        assert mounted <= volumes
        assert {probe["httpGet"]["port"] for probe in probes if probe} <= ports
        for source in container.get("envFrom", ()):
            assert source["configMapRef"]["name"] in maps


def test_selectors_find_the_pods_that_they_mean() -> None:
    labels = {
        owner["metadata"]["name"]: owner["spec"]["template"]["metadata"]["labels"]
        for owner in (SERVER, AGENT)
    }
    for item in base():
        spec = item.get("spec", {})
        if item["kind"] == "Service":
            wanted = spec["selector"]
        elif "podSelector" in spec:
            wanted = spec["podSelector"]["matchLabels"]
        elif "selector" in spec:
            wanted = spec["selector"]["matchLabels"]
        else:
            continue
        assert wanted.items() <= labels[item["metadata"]["name"]].items(), title(item)


def settings_of(container: Manifest) -> dict[str, str]:
    found = {item["name"]: item.get("value", "") for item in container.get("env", ())}
    if container.get("envFrom"):
        found |= one("ConfigMap", "server")["data"]
    return {name: value for name, value in found.items() if name.startswith("HANGWATCH_")}


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][0]["name"])
def test_every_setting_exists_and_every_secret_is_a_mounted_file(pod: Manifest) -> None:
    keys = agent_settings.keys(AgentSettings) | agent_settings.keys(ServerSettings)
    keys |= agent_settings.EXPORTED_KEYS
    files = {
        item["path"] for volume in pod.get("volumes", ()) if "secret" in volume
        for item in volume["secret"]["items"]
    }  # fmt: skip

    for container in containers(pod):
        for name, value in settings_of(container).items():
            key = name.removeprefix("HANGWATCH_").lower()
            if key.endswith("_file") and key not in keys:
                assert Path(value).name in files, name
                key = key.removesuffix("_file")
            assert key in keys, name
            assert "TOKEN" not in name or name.endswith("_FILE")


def test_no_service_makes_variables_that_hangwatch_would_take_for_settings() -> None:
    for item in base():
        if item["kind"] == "Service":
            assert not item["metadata"]["name"].startswith("hangwatch")
    for pod in PODS:
        assert pod["enableServiceLinks"] is False


def test_server_is_ready_with_its_database_and_alive_without() -> None:
    (container,) = SERVER["spec"]["template"]["spec"]["containers"]

    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["ports"][0]["containerPort"] == ServerSettings().port


def test_server_has_no_power_at_all() -> None:
    pod = SERVER["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in pod["containers"]:
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_agent_has_the_capabilities_it_needs_and_is_not_privileged() -> None:
    assert len(AGENTS) == 2
    for container in AGENTS:
        security = container["securityContext"]
        assert set(security["capabilities"]["add"]) == POWERS
        assert security["capabilities"]["drop"] == ["ALL"]
        assert security["allowPrivilegeEscalation"] is False
        assert "privileged" not in security


def test_agents_see_the_nodes_processes_and_the_jobs_run_dir() -> None:
    pod = AGENT["spec"]["template"]["spec"]
    (run_dir,) = (volume for volume in pod["volumes"] if volume["name"] == "run-dir")

    assert pod["hostPID"] is True
    for example in EXAMPLES[:-1]:
        assert f"hostPath: {{path: {run_dir['hostPath']['path']}," in example.read_text()
    assert {key["key"] for key in pod["tolerations"]} == {"nvidia.com/gpu", "amd.com/gpu"}


def test_nobody_needs_a_role_of_the_cluster() -> None:
    kinds = {item["kind"] for item in base()}

    assert not {kind for kind in kinds if "Role" in kind or kind == "ServiceAccount"}
    for owner in (SERVER, AGENT):
        assert owner["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("path", EXAMPLES[:-1], ids=lambda path: path.stem)
def test_hold_before_the_end_has_the_time_it_may_take(path: Path) -> None:
    for pod in pods(manifests(path)):
        (container,) = pod["containers"]
        command = " ".join(container["lifecycle"]["preStop"]["exec"]["command"])
        assert "hangwatch hold" in command
        assert command.endswith("|| true")
        assert pod["terminationGracePeriodSeconds"] > 30
