"""A process under a warden, here or elsewhere: it can be started, stopped, killed, paused, resumed.

Each of these returns when the host shows its effect, or raises HarnessError.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Final

from fencepost.clusters.abilities import NodeUsage
from fencepost.clusters.hosts.warden_client import WardenClient
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

_EFFECT_TIMEOUT_S: Final = 10.0
"""A signal shows within ms; a process in uninterruptible sleep may take seconds."""
_POLL_S: Final = 0.001


class LocalProcess:
    """A named process, started again and again under one warden. Not thread-safe.

    `prefix`: what stands before each command line and becomes that command, keeping the pid.
    """

    def __init__(
        self,
        name: str,
        *,
        warden: WardenClient,
        directory: PurePath,
        log: PurePath,
        prefix: Sequence[str] = (),
    ) -> None:
        self.name: Final = name
        self._warden = warden
        self._directory = directory
        self._log = log
        self._prefix = tuple(prefix)
        self._pid: int | None = None

    @property
    def pid(self) -> int | None:
        """The pid of its latest start; None if it was never started."""
        return self._pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of its latest start (negative: the signal); None while it lives."""
        return None if self._pid is None else self._warden.exit_code(self._pid)

    def state(self) -> NodeState:
        """Return the current state of the process, as the host reports it."""
        if self._pid is None:
            return NodeState.DOWN
        state = self._warden.state(self._pid)
        # Asked afterwards: if it has been reaped, its pid may be another process's.
        return NodeState.DOWN if self.exit_code is not None else state

    def usage(self) -> NodeUsage | None:
        """Return what it uses now; None if it is down."""
        if self._pid is None:
            return None
        usage = self._warden.usage(self._pid)
        return usage if self.exit_code is None else None

    def start(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start it inside its directory; it must be down. `env` is added to the warden's."""
        if (state := self.state()) is not NodeState.DOWN:
            raise HarnessError(f"{self.name} is {state} (pid {self._pid}): it cannot be started")
        self._pid = self._warden.spawn(
            (*self._prefix, *argv),
            name=self.name,
            log=self._log,
            cwd=self._directory,
            env=env,
        )

    def stop(self, *, timeout_s: float) -> bool:
        """Send SIGTERM, wait, kill after `timeout_s`. True if it ended on SIGTERM or was down."""
        if self._pid is None:
            return True
        self._warden.signal(self._pid, SIGTERM)
        if self._warden.wait(self._pid, timeout_s=timeout_s) is not None:
            return True
        self.kill()
        return False

    def terminate(self) -> None:
        """Send SIGTERM, without waiting."""
        if self._pid is not None:
            self._warden.signal(self._pid, SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, also if it is paused; return when it is gone."""
        if self._pid is None:
            return
        self._warden.signal(self._pid, SIGKILL)
        if self._warden.wait(self._pid, timeout_s=_EFFECT_TIMEOUT_S) is None:
            raise HarnessError(f"{self.name} (pid {self._pid}) is still there after SIGKILL")

    def pause(self) -> None:
        """Send SIGSTOP; return when every thread is stopped."""
        self._signal(SIGSTOP, NodeState.PAUSED)

    def resume(self) -> None:
        """Send SIGCONT; return when it runs."""
        self._signal(SIGCONT, NodeState.RUNNING)

    def _signal(self, number: int, wanted: NodeState) -> None:
        if self._pid is None or not self._warden.signal(self._pid, number):
            raise HarnessError(f"{self.name} is down: it cannot become {wanted}")
        deadline = time.monotonic() + _EFFECT_TIMEOUT_S
        while self._warden.state(self._pid) is not wanted:
            if time.monotonic() > deadline:
                raise HarnessError(f"{self.name} (pid {self._pid}) did not become {wanted}")
            time.sleep(_POLL_S)
