"""A node's process in a container of its own: the JVM is the container's first process.

Docker starts it and says how it ended. In between it is a process of this machine like any other,
and is signalled and looked at as such: SIGSTOP through its descriptor takes less than a millisecond
and shows as stopped threads, as it does for a local process, where the daemon takes 25 to 240 ms
for the same, and its freezer (`docker pause`) shows as threads that wait for a disk (Docker
20.10.24, 2 busy cores).

A start with the command and environment of the last one starts the same container again; any other
makes a new one. Either way its network namespace is a new one, with the same address.
"""

import os
import re
import select
import signal
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from signal import SIGABRT, SIGBUS, SIGCONT, SIGILL, SIGKILL, SIGSEGV, SIGSTOP, SIGTERM
from typing import Final, Self

from fencepost.clusters.abilities import NodeUsage
from fencepost.clusters.hosts.docker.daemon import ContainerSpec, ContainerState, Daemon
from fencepost.clusters.hosts.process import await_state, process_state, process_usage
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

_EFFECT_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.01
_FATAL: Final = (SIGKILL, SIGABRT, SIGSEGV, SIGBUS, SIGILL)
_BY_SIGNAL: Final = 128
_HEAP = re.compile(r"-Xmx(\d+)([kKmMgG]?)")
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BESIDE_HEAP_BYTES: Final = 512 << 20
# `exec`: the command becomes the container's first process. The log is opened by it, in the node's
# own directory, so that it is whole whatever becomes of the harness and of the daemon.
_LOGGED: Final = ("sh", "-c", 'log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1', "sh")


class _HeldProcess:
    """A process of this machine that is not the harness's child, held by a descriptor.

    The number of a process may be given to another as soon as it is gone; its descriptor never is.
    The descriptor is closed once the object is not referenced any more. Thread-safe.
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


class ContainerProcess:
    """`clusters.hosts.place.NodeProcess` in a container. Not thread-safe.

    `spec`: the container, whose command, environment and memory each start decides. `log`: a file
    in its directory.
    """

    def __init__(self, spec: ContainerSpec, *, node: str, daemon: Daemon, log: Path) -> None:
        self.name: Final = node
        self._spec = spec
        self._daemon = daemon
        self._log = log
        self._created: ContainerSpec | None = None
        self._process: _HeldProcess | None = None
        self._exit_code: int | None = None

    @property
    def pid(self) -> int | None:
        """The pid of its latest start; None if there was none, or it ended before it was seen."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of its latest start (negative: the signal); None while it lives."""
        if self._process is None:
            return self._exit_code
        if self._process.lives():
            return None
        if self._exit_code is None:
            self._daemon.await_end(self._spec.name)
            ended = self._daemon.container(self._spec.name)
            self._exit_code = exit_code_of(ended)
            if ended.out_of_memory:
                self._say_out_of_memory()
        return self._exit_code

    def state(self) -> NodeState:
        """Return the state of its process now, as the machine reports it."""
        return NodeState.DOWN if self._process is None else self._process.state()

    def usage(self) -> NodeUsage | None:
        """Return what it uses now; None if it is down."""
        return None if self._process is None else self._process.usage()

    def start(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start it inside its directory; it must be down. `env` is added to its usual one."""
        if (state := self.state()) is not NodeState.DOWN:
            raise HarnessError(f"{self.name} is {state} (pid {self.pid}): it cannot be started")
        wanted = replace(
            self._spec,
            argv=(*_LOGGED, str(self._log), *argv),
            env={**self._spec.env, **(env or {})},
            memory_bytes=memory_limit_bytes(argv),
        )
        if self._process is not None:
            # The daemon learns of an end a moment after the machine has seen it.
            self._daemon.await_end(wanted.name)
        if wanted != self._created:
            self._daemon.remove_container(wanted.name)
            self._created = None
            self._daemon.create_container(wanted)
            self._created = wanted
        self._daemon.start_container(wanted.name)
        self._hold()

    def stop(self, *, timeout_s: float) -> bool:
        """Send SIGTERM, wait, kill after `timeout_s`. True if it ended on SIGTERM or was down."""
        self.terminate()
        if self._process is None or self._process.await_end(timeout_s=timeout_s):
            return True
        self.kill()
        return False

    def terminate(self) -> None:
        """Send SIGTERM, without waiting."""
        if self._process is not None:
            self._process.signal(SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, also if it is paused; return when it and all it had started are gone."""
        if self._process is None:
            return
        self._process.signal(SIGKILL)
        if not self._process.await_end(timeout_s=_EFFECT_TIMEOUT_S):
            raise HarnessError(f"{self.name} (pid {self.pid}) is still there after SIGKILL")

    def pause(self) -> None:
        """Send SIGSTOP; return when every thread is stopped."""
        self._signal(SIGSTOP, NodeState.PAUSED)

    def resume(self) -> None:
        """Send SIGCONT; return when it runs."""
        self._signal(SIGCONT, NodeState.RUNNING)

    def _signal(self, number: int, wanted: NodeState) -> None:
        if self._process is None or not self._process.signal(number):
            raise HarnessError(f"{self.name} is down: it cannot become {wanted}")
        if not await_state(self._process.pid, wanted, timeout_s=_EFFECT_TIMEOUT_S):
            raise HarnessError(f"{self.name} (pid {self.pid}) did not become {wanted}")

    def _hold(self) -> None:
        """Take hold of what was started; if it has ended already, of how."""
        held, now = self._look()
        deadline = time.monotonic() + _EFFECT_TIMEOUT_S
        # A process that ends at once is gone before the daemon has heard of it.
        while now.running and held is None:
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"{self.name} runs as process {now.pid} of another machine: the Docker daemon "
                    "must be this machine's own"
                )
            time.sleep(_POLL_S)
            held, now = self._look()
        self._process = held if now.running else None
        self._exit_code = None if now.running else exit_code_of(now)

    def _look(self) -> tuple[_HeldProcess | None, ContainerState]:
        """The container's process, if this machine has it; and what the daemon says afterwards."""
        started = self._daemon.container(self._spec.name)
        held = _HeldProcess.of(started.pid) if started.running else None
        # The number was its own when it was taken hold of, if it runs even now.
        return held, self._daemon.container(self._spec.name)

    def _say_out_of_memory(self) -> None:
        limit_mib = self._created.memory_bytes >> 20 if self._created else 0
        with self._log.open("a") as log:
            log.write(f"the container was out of memory: its limit is {limit_mib} MiB\n")


def exit_code_of(ended: ContainerState) -> int:
    """Return the exit code as a parent would have it: negative if a signal ended it.

    Docker adds 128 to a signal's number, and so does a JVM that ends orderly upon SIGTERM. Only
    signals after which no process ends orderly are told from exit codes.
    """
    number = ended.exit_code - _BY_SIGNAL
    return -number if number in _FATAL else ended.exit_code


def memory_limit_bytes(argv: Sequence[str]) -> int:
    """Return twice the heap that a JVM's command line asks for last, plus half a GiB.

    A broker with 256 MiB of heap takes about 280 MB; what it writes passes through the limit too,
    as page cache, which gives way.
    """
    heaps = [found for one in argv if (found := _HEAP.fullmatch(one))]
    heap = int(heaps[-1][1]) * _UNITS[heaps[-1][2].lower()] if heaps else 256 << 20
    return 2 * heap + _BESIDE_HEAP_BYTES
