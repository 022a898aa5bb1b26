"""Alerts: reads incidents as rows, decides who is told what, and tells them at least once."""
