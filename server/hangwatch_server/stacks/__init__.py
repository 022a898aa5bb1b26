"""Stacks: what a captured stack shows, and many stacks merged into one tree with rank sets.

Pure: captures in, facts, trees and text out. It takes no captures and knows no job.
"""

from __future__ import annotations

from hangwatch_server.stacks.facts import Sample, facts, superfluous
from hangwatch_server.stacks.merge import RankStacks, merge
from hangwatch_server.stacks.signature import signature
from hangwatch_server.stacks.text import text

__all__ = ["RankStacks", "Sample", "facts", "merge", "signature", "superfluous", "text"]
