"""The networks of a compose file as the kernel has them: a bridge each, a namespace per service.

Nothing of this machine's own network is touched: the bridges lie in a namespace of their own, and
all of it is gone when the processes that hold the namespaces end.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.deploy.compose import Project
from tests.support.waiting import until

FIRST_HOST = 10


class Namespace:
    """A network namespace, for as long as the process that sleeps in it."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        ours = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink(self.path) != ours, 10, "the namespace is there")
        self.ip(["link set lo up"])

    @property
    def pid(self) -> int:
        return self._holder.pid

    @property
    def path(self) -> Path:
        return Path(f"/proc/{self.pid}/ns/net")

    def ip(self, lines: Iterable[str]) -> None:
        """Commands of iproute2 inside."""
        subprocess.run(
            ["nsenter", f"--net={self.path}", "ip", "-batch", "-"],
            input="\n".join(lines),
            text=True,
            check=True,
        )

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


class Wires:
    """All networks of a project; `namespaces` has one for each service."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._switch = Namespace()
        self.namespaces = {name: Namespace() for name in project.services}
        self._addresses = self._numbered()
        self._switch.ip(
            line
            for network in project.networks
            for line in (f"link add {network} type bridge", f"link set {network} up")
        )
        for number, name in enumerate(project.services):
            self._plug(name, number)

    def hosts(self, name: str) -> str:
        """`/etc/hosts` of a service: itself, and whoever is on a network with it."""
        lines = ["127.0.0.1 localhost"]
        ours = self._addresses[name]
        lines += [f"{address} {name}" for address in ours.values()]
        for other, theirs in self._addresses.items():
            shared = [theirs[network] for network in theirs if network in ours]
            lines += [f"{address} {other}" for address in shared[:1] if other != name]
        return "\n".join(lines) + "\n"

    def addresses(self) -> dict[str, list[str]]:
        return {name: list(ours.values()) for name, ours in self._addresses.items()}

    def close(self) -> None:
        for namespace in (self._switch, *self.namespaces.values()):
            namespace.close()

    def _numbered(self) -> dict[str, dict[str, str]]:
        """Service to network to address."""
        subnets = _subnets(self._project.networks, self._project.subnets)
        return {
            name: {network: str(subnets[network][FIRST_HOST + number]) for network in one.networks}
            for number, (name, one) in enumerate(self._project.services.items())
        }

    def _plug(self, name: str, number: int) -> None:
        inside = self.namespaces[name]
        for order, (network, address) in enumerate(self._addresses[name].items()):
            port = f"port{number}-{order}"
            self._switch.ip(
                [
                    f"link add {port} type veth peer name {network} netns {inside.pid}",
                    f"link set {port} master {network} up",
                ]
            )
            inside.ip([f"addr add {address}/24 dev {network}", f"link set {network} up"])


def _subnets(
    names: Sequence[str], given: Mapping[str, str]
) -> dict[str, ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return {
        name: ipaddress.ip_network(given.get(name, f"10.251.{number}.0/24"))
        for number, name in enumerate(names)
    }
