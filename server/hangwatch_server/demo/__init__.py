"""Shows Hangwatch at work: a real server, two real agents and a real job that hangs.

The stage (`stage`), the cases (`cases`) and the judgement (`judge`) serve the acceptance tests too.
"""

from __future__ import annotations

from hangwatch_server.demo.main import main

__all__ = ["main"]
