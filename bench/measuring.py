"""The cost of a piece of work: time, time of cores, and memory of a process with all its children.

Memory is resident memory, added up over the tree and sampled twenty times a second: pages that a
child shares with its parent count twice, and a peak between two samples is missed. The children of
a Spark session are its JVM and the JVM's Python workers.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import log
from typing import Final

import psutil

_SAMPLE_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one repetition."""

    seconds: float
    cpu_s: float
    """The time of all cores, for all processes that were there at the end of a sample."""
    rss_bytes_max: int
    by_program: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Resident bytes of each process at most, by its program; the largest first."""


def measured(work: Callable[[], object], *, root: psutil.Process | None = None) -> Cost:
    """Return the cost of doing this once: of this process, or of another one that does it."""
    with _watched(root or psutil.Process()) as tree:
        began_s = time.monotonic()
        work()
        seconds = time.monotonic() - began_s
    return Cost(
        seconds=seconds,
        cpu_s=tree.cpu_s,
        rss_bytes_max=tree.rss_bytes_max,
        by_program=tree.by_program(),
    )


def growth(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, ...]:
    """Return, between neighbouring sizes, the exponent b if time grows as size to the b."""
    pairs = list(zip(sizes, seconds, strict=True))
    return tuple(
        log(after_s / before_s) / log(after / before)
        for (before, before_s), (after, after_s) in pairwise(pairs)
    )


def spread(figures: Sequence[float], form: str) -> str:
    """Return minimum, median and maximum as text."""
    low, middle, high = min(figures), statistics.median(figures), max(figures)
    return f"{low:{form}} / {middle:{form}} / {high:{form}}"


@contextmanager
def _watched(root: psutil.Process) -> Iterator["_Tree"]:
    tree, over = _Tree(root), threading.Event()

    def watch() -> None:
        while not over.wait(_SAMPLE_S):
            tree.sample()

    watcher = threading.Thread(target=watch, name="memory-watch", daemon=True)
    watcher.start()
    try:
        yield tree
    finally:
        over.set()
        watcher.join()
        tree.sample()


class _Tree:
    """A process and everything beneath it."""

    def __init__(self, root: psutil.Process) -> None:
        self._root = root
        self._programs: dict[psutil.Process, str] = {}
        self._largest: dict[psutil.Process, int] = {}
        self._before_s = self._used()
        self._after_s = dict(self._before_s)
        self.rss_bytes_max = 0
        self.sample()

    @property
    def cpu_s(self) -> float:
        """CPU time since the start; of a process that has ended, as of its last sample."""
        return sum(
            used - self._before_s.get(process, 0.0) for process, used in self._after_s.items()
        )

    def sample(self) -> None:
        """Look at every process once."""
        self._after_s |= self._used()
        resident = 0
        for process in self._processes():
            try:
                of_process = process.memory_info().rss
                self._programs[process] = _program(process)  # it may have become another one
            except psutil.Error:  # it ended
                continue
            resident += of_process
            self._largest[process] = max(of_process, self._largest.get(process, 0))
        self.rss_bytes_max = max(self.rss_bytes_max, resident)

    def by_program(self) -> Mapping[str, tuple[int, ...]]:
        """Return the resident bytes of each process at most, by its program; the largest first."""
        found: dict[str, list[int]] = {}
        for process, size in sorted(self._largest.items(), key=lambda one: -one[1]):
            found.setdefault(self._programs[process], []).append(size)
        return {program: tuple(sizes) for program, sizes in found.items()}

    def _used(self) -> dict[psutil.Process, float]:
        found = {}
        for process in self._processes():
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            found[process] = times.user + times.system
        return found

    def _processes(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.Error:  # it ended
            return []


def _program(process: psutil.Process) -> str:
    """Return the module that Python runs in a process, else the name of its program."""
    line = process.cmdline()
    return line[line.index("-m") + 1] if "-m" in line[:-1] else process.name()
