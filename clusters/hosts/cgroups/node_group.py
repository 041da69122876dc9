"""One node's control groups: made for it before it starts, so that all it uses is charged there.

A bound holds for the node, not for its process: a node that is started again comes under it. What
counts as effect is what the kernel has counted in the group.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusters.hosts.cgroups.hierarchy import Parent, parents
from clusters.hosts.cgroups.limits import Cpu, Memory, cpu_of, memory_of
from clusters.hosts.ledger import Ledger
from clusters.hosts.undo import RemoveGroup
from history.failure import HarnessError

__all__ = ["NodeGroup", "make_group"]

_EFFECT_TIMEOUT_S: Final = 15.0
_POLL_S: Final = 0.02
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """The groups of one node, there until the ledger removes them; not thread-safe."""

    node: str
    directories: tuple[Path, ...]
    cpu: Cpu
    memory: Memory

    def adopt(self, pid: int) -> None:
        """Take a process in, all its threads; what it used so far stays charged elsewhere."""
        for directory in self.directories:
            try:
                (directory / "cgroup.procs").write_text(str(pid))
            except OSError as error:
                raise HarnessError(f"{self.node}: {directory} does not take pid {pid}") from error

    def throttle(self, share: float) -> str:
        """At most so much of a core; returns once its processes were held back. Or HarnessError."""
        before, _ = self.cpu.throttled()
        self.cpu.limit(share)
        self._await(
            lambda: self.cpu.throttled()[0] > before,
            f"it was not held back within {_EFFECT_TIMEOUT_S:g} s: it uses less than {share:.0%}",
        )
        return f"{self.node}: held back by the kernel at {share:.1%} of a core"

    def unthrottle(self) -> str:
        """No bound any more; says how much it was held back since it was made."""
        self.cpu.limit(None)
        count, seconds = self.cpu.throttled()
        return f"{self.node}: free again; held back {count} times so far, {seconds:.1f} s in all"

    def squeeze(self, room_bytes: int) -> str:
        """No more than its heap and this; returns once that pressed it. Or HarnessError.

        A node that has less than that beside its heap gets half of what it has: otherwise nothing
        would press it. Files that others mapped before are charged to them.
        """
        used, before = self.memory.used_bytes(), self.memory.pressed()
        held = self.memory.held_bytes()
        beside = max(0, used - held)
        room = room_bytes if room_bytes < beside else beside // 2
        bound = held + room
        self._bind(bound)
        self._await(
            lambda: self.memory.pressed() > before or self.memory.used_bytes() <= bound < used,
            f"it did not come to its bound within {_EFFECT_TIMEOUT_S:g} s",
        )
        return (
            f"{self.node}: bound to {bound / _MIB:.0f} MiB, {room / _MIB:.1f} MiB of it beside its "
            f"heap; it used {used / _MIB:.0f} MiB before, "
            f"uses {self.memory.used_bytes() / _MIB:.0f} MiB now, and came to its bound "
            f"{self.memory.pressed() - before} times"
        )

    def unsqueeze(self) -> str:
        """No bound any more; says how often it came to one since it was made."""
        self.memory.limit(None)
        return f"{self.node}: free again; came to its bound {self.memory.pressed()} times so far"

    def _bind(self, bound: int) -> None:
        """Set the bound, as soon as what has to go is written to disk."""
        deadline = time.monotonic() + _EFFECT_TIMEOUT_S
        while True:
            try:
                return self.memory.limit(bound)
            except HarnessError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)

    def _await(self, seen: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _EFFECT_TIMEOUT_S
        while not seen():
            if time.monotonic() > deadline:
                raise HarnessError(f"{self.node}: {otherwise}")
            time.sleep(_POLL_S)


def make_group(node: str, *, ledger: Ledger) -> NodeGroup:
    """Make a node's groups, empty and without bounds. HarnessError if this machine lets us not."""
    found = parents()
    made = {controller: _made(parent, node, ledger) for controller, parent in found.items()}
    return NodeGroup(
        node=node,
        directories=tuple(dict.fromkeys(made.values())),
        cpu=cpu_of(made["cpu"], version=found["cpu"].version),
        memory=memory_of(made["memory"], version=found["memory"].version),
    )


def _made(parent: Parent, node: str, ledger: Ledger) -> Path:
    directory = parent.directory / f"fencepost-{os.getpid()}-{node}"
    ledger.note(RemoveGroup(directory=str(directory)))
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise HarnessError(f"{directory}: cannot be made: {error.strerror}") from error
    return directory
