"""Waits of tests for what real nodes do: for a condition, within a bound."""

import time
from collections.abc import Callable

from history.failure import HarnessError

__all__ = ["until"]


def until(claim: Callable[[], bool], *, timeout_s: float = 60.0, every_s: float = 0.005) -> bool:
    """Wait for a claim to come true; False if it has not within the bound.

    A look that nobody answers (HarnessError) is none: a node may be busy for a while.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if claim():
                return True
        except HarnessError:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
