"""Clients of one process that each wait for their answers: a thread a logical client.

For clients that do little and wait long: what one of them waits for delays no other.
"""

import threading
import traceback
from collections.abc import Callable, Iterable
from typing import Final

from fencepost.history.clock import Clock
from fencepost.workloads.generators.pace import Pace

Run = Callable[[threading.Event], None]
"""The work of a thread, until the event is set."""

_TICK_NS: Final = 1_000_000
_LOOK_S: Final = 0.1


def run_threads(runs: Iterable[Run], *, stopped: Callable[[], bool], end_s_max: float) -> bool:
    """Run these until told to stop, or until one of them fails: then return False.

    A thread that has not ended `end_s_max` after that is left behind; it ends with the process.
    """
    ending, failed = threading.Event(), threading.Event()
    threads = [_thread(run, ending, failed) for run in runs]
    while not stopped() and not failed.is_set():
        failed.wait(_LOOK_S)
    ending.set()
    for thread in threads:
        thread.join(timeout=end_s_max)
    return not failed.is_set()


def steady_pace(rate: float, clock: Clock, *, share: float) -> Pace:
    """Return a schedule without a backlog; `share` of a step later than the first one's."""
    start_ns = clock.now_ns() + int(share * 1e9 / rate)
    return Pace(rate=rate, backlog_max=1, tick_ns=_TICK_NS, start_ns=start_ns)


def await_due(pace: Pace, clock: Clock, ending: threading.Event) -> bool:
    """Wait for what is due next; return False if told to end."""
    while not pace.due(clock.now_ns()):
        if ending.wait(min(_LOOK_S, pace.wait_ns(clock.now_ns()) / 1e9)):
            return False
    return not ending.is_set()


def _thread(run: Run, ending: threading.Event, failed: threading.Event) -> threading.Thread:
    def guarded() -> None:
        try:
            run(ending)
        except BaseException:  # noqa: BLE001  # whatever it is ends the client, and is in its log
            traceback.print_exc()
            failed.set()

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread
