"""Offline: files that ranks left behind in, the same findings out as of a job that is watched.

Pure: bytes and names come in, nothing is stored, and nothing is ever unpickled: the readers are the
agent's own, which trust no file (docs/decisions/0012).
"""

from __future__ import annotations

from hangwatch_server.offline.examine import document, examine
from hangwatch_server.offline.model import File, FileKind, FileRow, JobReport, Outcome, Report

__all__ = ["File", "FileKind", "FileRow", "JobReport", "Outcome", "Report", "document", "examine"]
