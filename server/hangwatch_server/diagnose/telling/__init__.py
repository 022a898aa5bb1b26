"""Findings in words: summaries, evidence, hints. No decision is made here."""
