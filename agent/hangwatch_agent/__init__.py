"""The node's side of Hangwatch, and its command line."""

__version__ = "0.1.0"
