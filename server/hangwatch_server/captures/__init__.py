"""Captures: asking agents for stacks and recorder entries, keeping them, reading them merged."""
