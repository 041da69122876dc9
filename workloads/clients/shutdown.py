"""SIGTERM as a flag that a client's loop reads once a round."""

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

__all__ = ["pause", "stop_on_sigterm"]

_LOOK_S: Final = 0.1


def stop_on_sigterm() -> Callable[[], bool]:
    """Return a check whether SIGTERM (or Ctrl-C, when started by hand) came since this call.

    The handler only takes note: an exception out of it could strike between a poll and the record
    of what it returned.
    """
    asked = False

    def note(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGINT, note)
    return lambda: asked


def pause(seconds: float, stopped: Callable[[], bool]) -> None:
    """Wait for so long, or until told to stop."""
    until_s = time.monotonic() + seconds
    while not stopped() and (left_s := until_s - time.monotonic()) > 0:
        time.sleep(min(_LOOK_S, left_s))
