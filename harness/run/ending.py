"""What a user's signals do to a run.

Once its clients run, the first SIGINT ends the faults alone: the run is healed, read back and
judged as far as it came. Every other one, and SIGTERM, ends the run at once.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class InterruptedRunError(KeyboardInterrupt):
    """The user ended the run at once (SIGINT, SIGTERM).

    It is no HarnessError: code that asks a cluster again after an error would go on, and the user's
    wish would be lost.
    """


class EarlyEnd(Exception):  # noqa: N818  # nothing went wrong
    """The user wants no more faults. No HarnessError, for the same reason."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise InterruptedRunError at SIGINT or SIGTERM, once.

    A second one cannot disturb clean-up.
    """

    def interrupt(number: int, _frame: FrameType | None) -> None:
        for each in previous:
            signal.signal(each, signal.SIG_IGN)
        raise InterruptedRunError(f"interrupted by {signal.Signals(number).name}")

    previous = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_a_signal(say: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Yield what raises EarlyEnd once SIGINT came; the next one does what it did before.

    `say` is told at once that it was heard. Only a process's main thread can be signalled: in any
    other one nothing changes.
    """
    asked = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        asked.set()
        say("interrupted: no more faults; what was recorded is judged (again: ends at once)")

    def check() -> None:
        if asked.is_set():
            asked.clear()
            raise EarlyEnd

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
