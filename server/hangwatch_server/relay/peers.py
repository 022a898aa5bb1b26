"""The other servers as far as they are heard, and which nodes each of them holds.

It touches no network, and time is passed in. What to do about a silent server the relay decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WANT_EVERY_S = 2.0
BEHIND_S = 1.0


@dataclass(slots=True)
class Peer:
    """One other server."""

    replica: str
    called_s: float
    number: int  # of the last batch that came, or that its call named when it was new
    missed_before: int  # batches before this one were missed
    behind_since_s: float | None = None  # it has called a number that did not come
    is_whole: bool = False  # its whole state has come, and nothing was missed since
    wanted_s: float | None = None
    nodes: set[str] = field(default_factory=set)

    def miss(self, number: int) -> None:
        """Everything of it before this batch may lack something."""
        self.is_whole, self.missed_before = False, number


class Peers:
    """Everything is keyed by the name of the server's run: one that starts anew is another.

    After `silent_s` without a call a server is silent; its agents would be late by then.
    """

    def __init__(self, silent_s: float) -> None:
        self.silent_s = silent_s
        self._peers: dict[str, Peer] = {}
        self._holders: dict[str, str] = {}
        self._moving_s: dict[str, float] = {}  # nodes that were sent to other servers, and when

    def all(self) -> tuple[Peer, ...]:
        return tuple(self._peers.values())

    def silent(self, now_s: float) -> tuple[Peer, ...]:
        """Those that have not called for so long that they are not heard any more."""
        return tuple(peer for peer in self._peers.values() if now_s - peer.called_s > self.silent_s)

    def find(self, replica: str) -> Peer | None:
        return self._peers.get(replica)

    def called(self, replica: str, number: int, now_s: float) -> bool:
        """A server said that it is here; whether it is new."""
        peer = self._peers.get(replica)
        if peer is None:
            self._peers[replica] = Peer(replica, now_s, number, number + 1)
            return True
        peer.called_s = now_s
        if number <= peer.number:
            peer.behind_since_s = None
        elif peer.behind_since_s is None:
            peer.behind_since_s = now_s
        elif now_s - peer.behind_since_s > BEHIND_S:
            peer.miss(number + 1)  # it would have come by now
        return False

    def batch(self, replica: str, number: int) -> None:
        """A batch came from a known server."""
        peer = self._peers[replica]
        if number != peer.number + 1:
            peer.miss(number)
        peer.number = number
        peer.behind_since_s = None

    def wants(self, peer: Peer, now_s: float) -> bool:
        """Whether to ask for the whole state now; it then counts as asked."""
        if peer.is_whole:
            return False
        if peer.wanted_s is not None and now_s - peer.wanted_s < WANT_EVERY_S:
            return False
        peer.wanted_s = now_s
        return True

    def whole(self, replica: str, nodes: tuple[str, ...], since: int) -> frozenset[str]:
        """The whole state has come, in the batches after `since` up to this one.

        Returns the nodes that the server no longer holds.
        """
        peer = self._peers[replica]
        if peer.missed_before <= since + 1:
            peer.is_whole, peer.wanted_s = True, None
        return frozenset(peer.nodes - set(nodes))

    def holds(self, replica: str, node: str) -> None:
        """A node's connection is there now, wherever it was before."""
        self.drops(node)
        self._peers[replica].nodes.add(node)
        self._holders[node] = replica

    def drops(self, node: str) -> None:
        self._moving_s.pop(node, None)
        before = self._peers.get(self._holders.pop(node, ""))
        if before is not None:
            before.nodes.discard(node)

    def moves(self, node: str, now_s: float) -> None:
        """Its server has asked a node to connect to another one."""
        self.drops(node)
        self._moving_s[node] = now_s

    def astray(self, now_s: float) -> tuple[str, ...]:
        """Nodes that have moved and came nowhere in time; each is named once."""
        found = [at for at in self._moving_s.items() if now_s - at[1] > self.silent_s]
        for node, _ in found:
            del self._moving_s[node]
        return tuple(node for node, _ in found)

    def holder(self, node: str) -> str:
        """The server that holds the node's connection; "" where none is known."""
        return self._holders.get(node, "")

    def forget(self, replica: str) -> frozenset[str]:
        """A server is gone; returns the nodes that it held."""
        peer = self._peers.pop(replica, None)
        nodes = frozenset(peer.nodes) if peer is not None else frozenset()
        for node in nodes:
            del self._holders[node]
        return nodes

    def unheard(self, now_s: float, *, is_deaf: bool) -> frozenset[str]:
        """The nodes whose servers are not heard."""
        if is_deaf:
            return frozenset(self._holders)
        return frozenset(node for peer in self.silent(now_s) for node in peer.nodes)
