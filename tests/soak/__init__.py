"""Healthy jobs of many hours on a fake clock, as heartbeats show them; a package of its own."""
