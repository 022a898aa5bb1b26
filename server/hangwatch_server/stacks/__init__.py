"""Stacks: what a captured stack shows, and many stacks merged into one tree with rank sets.

Pure: captures in, facts, trees and text out. It takes no captures and knows no job.
"""

from __future__ import annotations

from hangwatch_server.stacks.compare import compare
from hangwatch_server.stacks.export import chrome_trace, speedscope
from hangwatch_server.stacks.facts import Sample, facts, superfluous
from hangwatch_server.stacks.merge import RankStacks, merge, merge_outlined, outlined
from hangwatch_server.stacks.signature import signature
from hangwatch_server.stacks.text import text

__all__ = [
    "RankStacks",
    "Sample",
    "chrome_trace",
    "compare",
    "facts",
    "merge",
    "merge_outlined",
    "outlined",
    "signature",
    "speedscope",
    "superfluous",
    "text",
]
