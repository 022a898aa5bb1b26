"""Recorder dumps that a job has written to a file: asked for through its pipe, read with suspicion.

torch writes them as pickles. A pickle is a program, and this one was written by whoever runs the
job, so none is ever given to Python's own unpickler.
"""

from __future__ import annotations

from hangwatch_agent.dumps.pipe import PIPE_NAME, Subject, dump, has_pipe
from hangwatch_agent.dumps.reading import Dump

__all__ = ["PIPE_NAME", "Dump", "Subject", "dump", "has_pipe"]
