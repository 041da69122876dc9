"""The workload as the harness uses it, whatever its clients do."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from fencepost.history.counts import Counts
from fencepost.history.manifest import Promises
from fencepost.workloads.client_processes import ClientProcesses


@runtime_checkable
class HasProcesses(Protocol):
    """A workload whose clients are processes that can be paused and crashed, one by one."""

    @property
    def clients(self) -> ClientProcesses:
        """The clients that write and read records."""


class Workload(Protocol):
    """Clients that load a cluster and record what they did. One use: start, stop, read back."""

    @property
    def promises(self) -> Promises:
        """Return the promises to clients, by their configuration."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that it writes to and reads."""

    @property
    def pids(self) -> Mapping[str, int]:
        """The client processes that were started, by name; some may have ended."""

    def start(self) -> None:
        """Start every client; returns once each of them has recorded an operation.

        Raises HarnessError with the end of a client's log if that client does not come up.
        """

    def stop(self, timeout_s: float) -> None:
        """Let the clients finish what is in flight, then end; those that do not are killed.

        However they end, what they recorded stays. Idempotent.
        """

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """Read every key from its first to its last offset; return the keys of which this was done.

        Call it after `stop`: the end of a key is only known once no client writes to it.
        """

    def counts(self) -> Counts:
        """Return the counts of the clients so far; cheap enough to ask many times a second."""

    def failures(self) -> tuple[str, ...]:
        """Return a sentence and a log tail for each client that ended unasked, or would not end."""
