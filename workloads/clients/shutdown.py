"""SIGTERM as a question that a client's loop asks once a round."""

import signal
from collections.abc import Callable
from types import FrameType

__all__ = ["stop_on_sigterm"]


def stop_on_sigterm() -> Callable[[], bool]:
    """Whether SIGTERM (or Ctrl-C, when started by hand) came since this was called.

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
