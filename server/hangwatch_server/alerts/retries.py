"""When a message that did not arrive is tried again. Pure: chance is passed in.

Exponential with full jitter (M. Brooker, "Exponential Backoff And Jitter"). Standard Webhooks
suggests 5 s, 5 min, 30 min and hours; alarms are worth more while they are new, so the first tries
come sooner and the last one is half a day after the first: somebody has come to work by then.
"""

from __future__ import annotations

MAX_TRIES = 36
LONGEST_S = 3600.0
# A receiver may ask for a later time, but not put an alarm off for long.
LONGEST_ASKED_S = 900.0


def delay_s(
    tries: int, first_s: float, chance: float, asked_s: float | None = None
) -> float | None:
    """Seconds until the next try after `tries` failed ones; None when it is given up.

    `chance` is drawn evenly from 0 to 1; `asked_s` is the receiver's Retry-After.
    """
    if tries >= MAX_TRIES:
        return None
    ceiling_s = min(first_s * 2.0 ** (tries - 1), LONGEST_S)
    least_s = min(asked_s or 0.0, LONGEST_ASKED_S)
    return max(ceiling_s * chance, least_s)
