"""Keeps torch.compile away from the wrappers.

After a graph break around a collective, dynamo compiles whatever Python function is called next:
the wrappers too, at the cost of recompilations, and of warnings that a strict job turns into
errors. Marked code is run as it is, and so is all that it calls; nothing of dynamo is imported.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable

EVAL_FRAME = "torch._C._dynamo.eval_frame"


def keep_out(function: Callable[..., Any]) -> None:
    """Mark the function's code; a torch that cannot be told compiles it, rightly but slowly."""
    frames: Any = sys.modules.get(EVAL_FRAME)
    code = getattr(function, "__code__", None)
    # AttributeError: older than torch 2.7, which has another name for it; TypeError: newer.
    with contextlib.suppress(AttributeError, TypeError):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))
        return
    with contextlib.suppress(AttributeError, TypeError):
        frames.skip_code(code)
