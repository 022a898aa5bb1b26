"""The server of Hangwatch: takes what agents report, finds hangs, and shows them."""

__version__ = "0.1.0"
