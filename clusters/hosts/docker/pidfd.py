"""A process of this machine that is not the harness's child, held by a descriptor.

The number of a process may be given to another as soon as it is gone; its descriptor never is. So
it can be signalled, and its end be seen, without asking whoever started it.
"""

import os
import select
import signal
import weakref
from typing import Final, Self

from clusters.abilities import NodeUsage
from clusters.hosts.process import process_state, process_usage
from clusters.port import NodeState
from history.failure import HarnessError

__all__ = ["HeldProcess"]


class HeldProcess:
    """A process and its descriptor, which is closed once the object is not referenced any more.

    Thread-safe.
    """

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid: Final = pid
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that has this pid now; None if no process has it."""
        try:
            return cls(pid, os.pidfd_open(pid))
        except ProcessLookupError:
            return None

    def lives(self) -> bool:
        """Return whether it has not ended."""
        return not self.await_end(timeout_s=0)

    def await_end(self, *, timeout_s: float) -> bool:
        """Wait until it has ended. False if it has not within the bound."""
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))

    def state(self) -> NodeState:
        """Return its state, as /proc reports it."""
        state = process_state(self.pid)
        # Asked afterwards: its number may be another process's once it has ended.
        return state if self.lives() else NodeState.DOWN

    def usage(self) -> NodeUsage | None:
        """Return what it uses now; None if it has ended."""
        usage = process_usage(self.pid)
        return usage if self.lives() else None

    def signal(self, number: int) -> bool:
        """Send it a signal; False if it has ended. HarnessError if this user may not."""
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise HarnessError(
                f"cannot send {signal.Signals(number).name} to process {self.pid}: it runs as "
                "another user"
            ) from error
        return self.lives()
