"""The silences of one key, exactly, in memory that grows with the asks that wait at a time alone.

Asks come in the order of their calls. Whatever happened before the latest call is then known: an
ask that returned before it had been called before it. So each block settles the time up to its last
call, and keeps the asks that still wait. `checkers.service_level` says what a silence is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

WAITING_MAX: Final = 4
"""The asks that a silence names of those that waited; the others are counted."""
_FOREVER: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Asks of one key in the order of their calls, as arrays of one length."""

    index: NDArray[np.int64]
    """Of the operation."""
    call_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    """Of its return; of its call, if its end was never seen."""
    answered: NDArray[np.bool_]
    """It was acknowledged, or refused."""
    ok: NDArray[np.bool_]
    """It was acknowledged."""

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "Asks":
        """Return the chosen ones."""
        return Asks(
            index=self.index[chosen],
            call_ns=self.call_ns[chosen],
            end_ns=self.end_ns[chosen],
            answered=self.answered[chosen],
            ok=self.ok[chosen],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySilence:
    """A silence of a key, with the operations that prove it."""

    begin_ns: int
    end_ns: int
    before: int | None
    """The operation with the last acknowledgement before it; None: there was none."""
    after: int | None
    """The operation whose acknowledgement ended it; None: those that waited had failed."""
    waiting: tuple[int, ...]
    """The first operations that waited in it, `WAITING_MAX` at most."""
    waiting_count: int

    @property
    def length_ns(self) -> int:
        """Its length in ns."""
        return self.end_ns - self.begin_ns


def joined_asks(parts: Sequence[Asks]) -> Asks:
    """Return the asks of all parts, in order."""
    return Asks(
        index=np.concatenate([one.index for one in parts]),
        call_ns=np.concatenate([one.call_ns for one in parts]),
        end_ns=np.concatenate([one.end_ns for one in parts]),
        answered=np.concatenate([one.answered for one in parts]),
        ok=np.concatenate([one.ok for one in parts]),
    )


@dataclass(frozen=True, slots=True)
class _Points:
    """The ends of the stretches of a block: calls that nobody waited before, and answers."""

    starts: NDArray[np.int64]
    """Since when somebody waits, each time."""
    ends: NDArray[np.int64]
    """Until when."""
    answers: Asks
    """By the time of their answer."""
    all: NDArray[np.int64]
    """All of these that are not after the time up to which the block is settled, once each."""


class SilenceFold:
    """The silences of one key, of `least_ns` or more, block by block."""

    def __init__(self, least_ns: int) -> None:
        self.stretch_count = 0
        """The stretches between successive answers in which somebody waited, of any length."""
        self._least_ns = least_ns
        self._waiting: Asks | None = None
        """Those that wait when the block before ends."""
        self._since_ns = 0
        """The beginning of the stretch in which they do."""
        self._gone: tuple[int, ...] = ()
        """The first of those that waited in it and have failed meanwhile."""
        self._gone_count = 0
        self._answered_last: int | None = None

    def add(self, asks: Asks) -> list[KeySilence]:
        """Take more asks, called no earlier than those before; return silences that are over."""
        if not len(asks.index):
            return []
        whole = asks if self._waiting is None else joined_asks([self._waiting, asks])
        return self._settled(whole, until_ns=int(asks.call_ns[-1]))

    def done(self) -> list[KeySilence]:
        """Return the silences that are over when all who waited have returned."""
        if self._waiting is None:
            return []
        return self._settled(self._waiting, until_ns=_FOREVER)

    def _settled(self, asks: Asks, *, until_ns: int) -> list[KeySilence]:
        call_ns = asks.call_ns
        if self._waiting is not None:
            # Somebody waited all the time since then, whoever it was.
            call_ns = np.maximum(call_ns, self._since_ns)
            call_ns[0] = self._since_ns
        points = _points(asks, call_ns, until_ns=until_ns)
        self.stretch_count += len(points.all) - len(points.starts)
        found = [
            self._silence(begin_ns, end_ns, asks, call_ns, points.answers)
            for begin_ns, end_ns in _stretches(points, least_ns=self._least_ns)
        ]
        self._keep(asks, call_ns, points, until_ns=until_ns)
        return found

    def _silence(
        self, begin_ns: int, end_ns: int, asks: Asks, call_ns: NDArray[np.int64], answers: Asks
    ) -> KeySilence:
        place = int(np.searchsorted(answers.end_ns, begin_ns, side="right"))
        after = int(np.searchsorted(answers.end_ns, end_ns))
        is_answered = after < len(answers.end_ns) and answers.end_ns[after] == end_ns
        waited = asks.index[_waiting_in(asks, call_ns, begin_ns, end_ns)]
        carried = self._waiting is not None and begin_ns == self._since_ns
        gone, gone_count = (self._gone, self._gone_count) if carried else ((), 0)
        return KeySilence(
            begin_ns=begin_ns,
            end_ns=end_ns,
            before=int(answers.index[place - 1]) if place else self._answered_last,
            after=int(answers.index[after]) if is_answered else None,
            waiting=(*gone, *waited[: WAITING_MAX - len(gone)].tolist()),
            waiting_count=gone_count + len(waited),
        )

    def _keep(
        self, asks: Asks, call_ns: NDArray[np.int64], points: _Points, *, until_ns: int
    ) -> None:
        """Keep what the next block has to know."""
        still = asks.end_ns > until_ns
        if still.any():
            since_ns = int(points.all[-1])
            waited = _waiting_in(asks, call_ns, since_ns, until_ns + 1) & ~still
            goes_on = self._waiting is not None and since_ns == self._since_ns
            gone = (*(self._gone if goes_on else ()), *asks.index[waited][:WAITING_MAX].tolist())
            self._gone = gone[:WAITING_MAX]
            self._gone_count = (self._gone_count if goes_on else 0) + int(waited.sum())
            self._since_ns = since_ns
        self._waiting = asks.where(still) if still.any() else None
        if len(points.answers.index):
            self._answered_last = int(points.answers.index[-1])


def _points(asks: Asks, call_ns: NDArray[np.int64], *, until_ns: int) -> _Points:
    reach_ns = np.maximum.accumulate(np.maximum(asks.end_ns, call_ns))
    first = np.flatnonzero(call_ns[1:] > reach_ns[:-1]) + 1
    starts = call_ns[np.concatenate(([0], first))]
    ends = reach_ns[np.concatenate((first - 1, [len(call_ns) - 1]))]
    answers = asks.where(asks.answered & (asks.end_ns <= until_ns))
    answers = answers.where(np.argsort(answers.end_ns, kind="stable"))
    over = ends[ends <= until_ns]
    # They are runs in order, which a stable sort merges.
    points = np.sort(np.concatenate([starts, answers.end_ns, over]), kind="stable")
    return _Points(starts, ends, answers, points[np.diff(points, prepend=-1) > 0])


def _stretches(points: _Points, *, least_ns: int) -> list[tuple[int, int]]:
    """Return the stretches between neighbouring points, that long, in which somebody waits."""
    begin_ns, end_ns = points.all[:-1], points.all[1:]
    long = end_ns - begin_ns >= least_ns
    begin_ns, end_ns = begin_ns[long], end_ns[long]
    place = np.searchsorted(points.starts, begin_ns, side="right") - 1
    waits = end_ns <= points.ends[place]
    return list(zip(begin_ns[waits].tolist(), end_ns[waits].tolist(), strict=True))


def _waiting_in(
    asks: Asks, call_ns: NDArray[np.int64], begin_ns: int, end_ns: int
) -> NDArray[np.bool_]:
    """Return a mask of those that waited at some time after the beginning and before the end."""
    waits: NDArray[np.bool_] = (call_ns < end_ns) & (
        (asks.end_ns > begin_ns) | (asks.call_ns > begin_ns)
    )
    return waits
