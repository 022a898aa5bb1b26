"""Several servers as one: what each hears of its agents reaches the others, and commands come back.

Over Redis, which stores nothing of it (docs/decisions/0015). A single server has the relay `Alone`.
"""

from hangwatch_server.relay.alone import Alone
from hangwatch_server.relay.base import Relay

__all__ = ["Alone", "Relay"]
