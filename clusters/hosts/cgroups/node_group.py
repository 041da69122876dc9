"""The control groups of a node: made for it before it starts, so that all its use is charged there.

A bound holds for the node, not for its process: a node that is started again comes under it. An
effect is one that the kernel has counted in the group.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.cgroups.hierarchy import Parent, parents
from fencepost.clusters.hosts.cgroups.limits import Cpu, Memory, cpu_of, memory_of
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.undo import RemoveGroup
from fencepost.history.failure import HarnessError

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
                raise HarnessError(
                    f"{self.node}: cannot move pid {pid} into {directory}"
                ) from error

    def throttle(self, share: float) -> str:
        """Allow this share of a core; return once its processes were held back, or HarnessError."""
        before, _ = self.cpu.throttled()
        self.cpu.limit(share)
        self._await(
            lambda: self.cpu.throttled()[0] > before,
            f"it was not held back within {_EFFECT_TIMEOUT_S:g} s: it uses less than {share:.0%}",
        )
        return f"{self.node}: held back by the kernel at {share:.1%} of a core"

    def unthrottle(self) -> str:
        """Remove the bound; return how much it was held back since it was made."""
        self.cpu.limit(None)
        count, seconds = self.cpu.throttled()
        return f"{self.node}: free again; held back {count} times so far, {seconds:.1f} s in all"

    def squeeze(self, room_bytes: int) -> str:
        """Allow no more than its heap and this; return once that pressed it, or HarnessError.

        A node that has less than that besides its heap gets half of what it has: otherwise nothing
        would press it. Files that others mapped before are charged to them.
        """
        used, before = self.memory.used_bytes(), self.memory.pressed()
        beside = max(0, used - self.memory.held_bytes())
        room = room_bytes if room_bytes < beside else beside // 2
        bound, short = self._bind(room, used)
        self._await(
            lambda: self.memory.pressed() > before or self.memory.used_bytes() <= bound < used,
            f"it did not come to its bound within {_EFFECT_TIMEOUT_S:g} s",
        )
        now, times = self.memory.used_bytes(), self.memory.pressed() - before
        room = max(0, bound - self.memory.held_bytes())
        return (
            f"{self.node}: bound to {_mib(bound)}, {_mib(room)} of it beside its heap; it used "
            f"{_mib(used)} before, uses {_mib(now)} now, and came to its bound {times} times{short}"
        )

    def unsqueeze(self) -> str:
        """Remove the bound; return how often it reached one since it was made."""
        self.memory.limit(None)
        return f"{self.node}: free again; came to its bound {self.memory.pressed()} times so far"

    def _bind(self, room: int, used: int) -> tuple[int, str]:
        """The bound that was set, and in which way it falls short of its heap and `room`.

        While the kernel cannot take back enough at once, the group is held at what it has come
        down to: otherwise it would fill again, between two tries, what was written to disk.
        """
        reached, tries = used, 0
        deadline = time.monotonic() + _EFFECT_TIMEOUT_S
        while not self.memory.limit(wanted := self.memory.held_bytes() + room):
            tries += 1
            if self.memory.limit(now := self.memory.used_bytes()):
                reached = now
            if time.monotonic() > deadline:
                return self._reached(reached, wanted=wanted, used=used, tries=tries)
            time.sleep(_POLL_S)
        return wanted, ""

    def _reached(self, bound: int, *, wanted: int, used: int, tries: int) -> tuple[int, str]:
        short = f"the kernel took {_mib(wanted)} in none of {tries} tries ({_EFFECT_TIMEOUT_S:g} s)"
        if bound < used:
            return bound, f"; {short}"
        self.memory.limit(None)
        raise HarnessError(f"{self.node}: {short}; it used {_mib(used)} and released none of it")

    def _await(self, seen: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _EFFECT_TIMEOUT_S
        while not seen():
            if time.monotonic() > deadline:
                raise HarnessError(f"{self.node}: {otherwise}")
            time.sleep(_POLL_S)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / _MIB:.1f} MiB"


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
        raise HarnessError(f"cannot create {directory}: {error.strerror}") from error
    return directory
