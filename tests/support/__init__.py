"""Helpers that several test suites share. No tests."""
