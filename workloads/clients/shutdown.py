"""The end of a client: SIGTERM is a flag that its loop reads once a round."""

import signal
import time
from collections.abc import Callable
from enum import Enum, auto
from types import FrameType
from typing import Final

_LOOK_S: Final = 0.1


class Ending(Enum):
    """The reason why a logical client ended."""

    STOPPED = auto()
    FATAL = auto()


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
