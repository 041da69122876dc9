"""The beat of a process, by which it notices that it stood still.

A process that was stopped, or got no processor, does not know it: its clock goes on, and the
requests that it had open look slow. A thread that wakes a few times a second sees a gap in its own
beat. Each client writes its beat to a file, and the harness has one, too. Time in which all of them
stood still is no fault that anybody asked for: the machine was stopped, or had no room.

    CLIENT.beat     pairs of ns by CLOCK_MONOTONIC, little endian: first and last strike so far,
                    then begin and end of each gap
"""

import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

BEATS_VARIABLE: Final = "FENCEPOST_BEATS"
"""Environment variable: the file into which a process writes its beat."""
STALL: Final = "stall"
"""The name of the fault that all processes of a run stood still. It is never asked for."""
_INTERVAL_S: Final = 0.25
_GAP_NS_MIN: Final = 2_000_000_000
"""A shorter gap is a busy processor; the time-outs of clusters are longer."""
_PAIR: Final = struct.Struct("<qq")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BeatGap:
    """A time in which a process stood still."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Return the length of it."""
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Beats:
    """The beat of one process: when it was seen to live, and where it stood still meanwhile."""

    first_ns: int
    last_ns: int
    gaps: tuple[BeatGap, ...] = ()

    def lived(self, gap: BeatGap) -> bool:
        """Return whether the process was there before a gap and after it."""
        return self.first_ns <= gap.begin_ns and gap.end_ns <= self.last_ns


class Beat:
    """A beat that is kept in memory, and in a file if it has one.

    A thread strikes it for as long as the context lasts.
    """

    def __init__(self, file: int | None = None, *, also: Callable[[], None] | None = None) -> None:
        """`also`: what the thread does besides at each strike."""
        self._file, self._also = file, also
        self._first_ns = self._last_ns = time.monotonic_ns()
        self._gaps: list[BeatGap] = []
        self._ended = Event()
        self._thread = Thread(target=self._go, name="beat", daemon=True)
        self._note()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def so_far(self) -> Beats:
        """Return the beat up to now."""
        return Beats(first_ns=self._first_ns, last_ns=self._last_ns, gaps=tuple(self._gaps))

    def strike(self, now_ns: int) -> None:
        """Beat once; what has passed since the last time is a gap if it is long."""
        if now_ns - self._last_ns >= _GAP_NS_MIN:
            self._gaps.append(BeatGap(begin_ns=self._last_ns, end_ns=now_ns))
        self._last_ns = now_ns
        self._note()

    def _note(self) -> None:
        if self._file is None:
            return
        for place, gap in list(enumerate(self._gaps, start=1))[-1:]:
            pair = _PAIR.pack(gap.begin_ns, gap.end_ns)
            os.pwrite(self._file, pair, place * _PAIR.size)
        os.pwrite(self._file, _PAIR.pack(self._first_ns, self._last_ns), 0)

    def _go(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self.strike(time.monotonic_ns())
            if self._also is not None:
                self._also()


def begin_beat(path: Path) -> None:
    """Write the beat of this process to a file, for as long as it lives."""
    Beat(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)).__enter__()


def read_beats(path: Path) -> Beats | None:
    """Return the beat that a process has written; None if it had not begun to."""
    content = path.read_bytes()
    pairs = list(_PAIR.iter_unpack(content[: len(content) // _PAIR.size * _PAIR.size]))
    if not pairs:
        return None
    (first_ns, last_ns), *gaps = pairs
    found = tuple(BeatGap(begin_ns=begin_ns, end_ns=end_ns) for begin_ns, end_ns in gaps)
    return Beats(first_ns=first_ns, last_ns=last_ns, gaps=found)


def stalls(own: Beats, others: Sequence[Beats]) -> Iterator[BeatGap]:
    """Yield the times in which this process and all others that lived then stood still.

    Without any other that lived, nothing is known of the machine.
    """
    for gap in own.gaps:
        found = [gap] if any(other.lived(gap) for other in others) else []
        for other in others:
            if other.lived(gap):
                found = [both for one in found for both in _common(one, other.gaps)]
        yield from found


def _common(one: BeatGap, gaps: Sequence[BeatGap]) -> Iterator[BeatGap]:
    for other in gaps:
        begin_ns, end_ns = max(one.begin_ns, other.begin_ns), min(one.end_ns, other.end_ns)
        if end_ns - begin_ns >= _GAP_NS_MIN:
            yield BeatGap(begin_ns=begin_ns, end_ns=end_ns)
