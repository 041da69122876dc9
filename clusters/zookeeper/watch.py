"""The watch on what servers show of themselves: the table `ensemble` of a run."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.zookeeper.four_letter_words import ask_servers
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.journal import RowJournal

_LOOK_S: Final = 0.2
_END_S_MAX: Final = 10.0


class EnsembleWatch:
    """A context manager: asks every server that runs, five times a second.

    `running`: the addresses of the servers that run, at the time of asking. Raises HarnessError at
    the exit if it ended early, e.g. since the record could not be written.
    """

    def __init__(
        self, raw: Path, *, clock: Clock, running: Callable[[], Mapping[NodeName, Address]]
    ) -> None:
        self._clock = clock
        self._running = running
        self._journal = RowJournal(raw, "ensemble")
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="ensemble-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=_END_S_MAX)
        self._journal.close()
        if self._failure is not None and kind is None:
            raise HarnessError(f"the watch of the ensemble ended early: {self._failure!r}")

    def _run(self) -> None:
        try:
            while not self._stop.wait(_LOOK_S):
                self._look()
        except Exception as error:  # noqa: BLE001  # the run's end says so
            self._failure = error

    def _look(self) -> None:
        asked_ns = self._clock.now_ns()
        for node, state in ask_servers(self._running()).items():
            stated = {"mode": state.mode, "zxid": state.zxid}
            shown = {name: value for name, value in stated.items() if value is not None}
            self._journal.add(
                {
                    "asked_ns": asked_ns,
                    "time_ns": self._clock.now_ns(),
                    "node": node,
                    "serving": state.mode is not None,
                    **shown,
                }
            )
