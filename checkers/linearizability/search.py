"""The search for an order that explains every answer, through all orders, for any model.

Wing and Gong's search as Lowe made it. Calls and returns stand in a list, by time. An operation can
come next if its call stands before the first return that is left; it is then taken out of the list
with its return, and put back when that turns out to lead nowhere. (At one time calls stand before
returns: intervals are closed, and what meets is concurrent.) What was reached once is not
tried again: where the first return is the same, the operations beyond it that were taken are the
same (a bit a slot; a slot is one operation's from its call to its return) and the state is the
same, what can follow is the same.

Three things keep it small. None of them leaves out an order that matters:

- *Answers that fit at once.* A read or a refusal that fits the state as it is changes nothing:
  whatever can follow without it can follow it. It is taken, and nothing else is tried in its place.
- *What may have happened is tried last*, only where it changes the state, and of equal operations
  the one that was called first: any later one could be exchanged for it.
- *Pieces.* Where every operation that must take effect has returned before the next one is called,
  the history is cut. Nothing but the state and what may have happened crosses a cut: pieces are
  searched one by one, from every pair of those that the one before can end with. Those that are few
  are all found before the next piece begins, so that nothing else of the piece has to be kept.

Time and memory can be exponential in how many operations are open at once; the meter is asked
after every thousand steps. What is left of a history that fits no order is the first return that
no order gets past: nothing that was called after it has any part in the contradiction.

Source: Wing and Gong 1993, "Testing and verifying concurrent objects"; Lowe 2017, "Testing for
linearizability".
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from sys import getsizeof
from typing import Final, Self

from fencepost.checkers.linearizability.budget import Meter
from fencepost.checkers.linearizability.operations import Effect, Operation
from fencepost.checkers.linearizability.sequential import Sequential, State, Step

_TICK: Final = 1000
"""Steps between two looks at the meter."""
_CONFIGURATION_BYTES: Final = 400
"""The memory of one visited configuration, without its state: measured, rounded up."""
_STATES_MAX: Final = 5
_HEAD: Final = 0


class _Timeline:
    """Operations by number, each in the list with its call and its return, or taken out of it."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.taken = 0
        """One bit a slot, turned whenever an operation of the slot is taken or put back: of those
        that are not over at the first return left, it tells which are taken."""
        count = len(operations)
        moments = sorted(
            [(one.call, False, number) for number, one in enumerate(operations)]
            + [(one.end, True, number) for number, one in enumerate(operations)]
        )
        self._slot_bits = _slot_bits(moments, count)
        # Entry 0 is the head and the last one the end; `_number` is negative for returns.
        self._number = [0, *(~n if is_return else n for _, is_return, n in moments), -1]
        self._next = list(range(1, 2 * count + 3))
        self._previous = list(range(-1, 2 * count + 1))
        self._calls = [0] * count
        self._returns = [0] * count
        for entry, (_, is_return, number) in enumerate(moments, start=1):
            (self._returns if is_return else self._calls)[number] = entry

    def open(self) -> list[int]:
        """Return the operations that can be next: those called before the first remaining return.

        The one of that return comes first. Empty once all are taken.
        """
        found: list[int] = []
        entry = self._next[_HEAD]
        while (number := self._number[entry]) >= 0:
            found.append(number)
            entry = self._next[entry]
        if found:
            found.remove(~number)
            found.insert(0, ~number)
        return found

    def take(self, number: int) -> None:
        """Take an operation out of the list."""
        self.taken ^= self._slot_bits[number]
        for entry in (self._calls[number], self._returns[number]):
            before, after = self._previous[entry], self._next[entry]
            self._next[before], self._previous[after] = after, before

    def put_back(self, number: int) -> None:
        """Undo the last `take` that is not undone, which was of this operation."""
        self.taken ^= self._slot_bits[number]
        for entry in (self._returns[number], self._calls[number]):
            before, after = self._previous[entry], self._next[entry]
            self._next[before], self._previous[after] = entry, entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """The reason why no order explains the operations."""

    operation: Operation
    """No order gets past its return."""
    states: tuple[State, ...]
    """Some of those that there can have been by then."""
    state_count: int


_Configuration = tuple[State, int]
"""Between pieces: the state, and which of the operations that may have happened did, as bits."""
_Move = tuple[int, State, int]
"""An operation of a piece by number (-1: one that may have happened), and what is there then."""


@dataclass(slots=True)
class _Progress:
    """The furthest point that any order reached: the place of a return, and the states there."""

    place: tuple[int, int, int] = (-1, -1, -1)
    operation: Operation | None = None
    states: dict[State, None] = field(default_factory=dict)

    def reached(self, place: tuple[int, int, int], operation: Operation, state: State) -> None:
        if place > self.place:
            self.place, self.operation, self.states = place, operation, {}
        if place == self.place:
            self.states[state] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The state that all pieces share."""

    pieces: Sequence[Sequence[Operation]]
    optional: Sequence[Sequence[tuple[int, Operation]]]
    """Operations that may have happened, by call, equal ones together, each with its bit."""
    model: Sequential
    meter: Meter
    progress: _Progress = field(default_factory=_Progress)


@dataclass(frozen=True, slots=True)
class _Frame:
    """A configuration inside a piece, while what follows it is tried."""

    choices: Iterator[_Move]
    taken: tuple[int, ...]
    """The operations taken to come here, in order."""


@dataclass(slots=True)
class _Ends:
    """Ends of a piece: those that were found, and those that are still to be."""

    found: deque[_Configuration]
    more: Iterator[_Configuration | None]
    exhausted: bool

    def pop(self) -> _Configuration | None:
        """Return the next configuration; None if all are exhausted."""
        if self.found:
            return self.found.popleft()
        end = next((one for one in self.more if one is not None), None)
        self.exhausted = end is None
        return end


def stuck(
    operations: Sequence[Operation],
    *,
    model: Sequential,
    start: State,
    meter: Meter,
) -> Stuck | None:
    """Return why no order explains these operations from the state `start` on; None if one does.

    Operations are by call. Raises OverBudgetError if the meter runs out first.
    """
    search = _Search(
        pieces=_pieces([one for one in operations if one.effect is not Effect.MAY]),
        optional=_optional(operations),
        model=model,
        meter=meter,
    )
    if _explained(search, start):
        return None
    progress = search.progress
    assert progress.operation is not None, "no order fails before the first return"
    return Stuck(
        operation=progress.operation,
        states=tuple(islice(progress.states, _STATES_MAX)),
        state_count=len(progress.states),
    )


def _optional(operations: Sequence[Operation]) -> list[list[tuple[int, Operation]]]:
    alike: defaultdict[Hashable, list[tuple[int, Operation]]] = defaultdict(list)
    may = [one for one in operations if one.effect is Effect.MAY]
    for number, one in enumerate(may):
        alike[one.f, one.expected, one.version, one.value].append((1 << number, one))
    return list(alike.values())


def _explained(search: _Search, start: State) -> bool:
    """Return whether the last piece has an end: depth first over the pieces."""
    tried: defaultdict[int, set[_Configuration]] = defaultdict(set)
    ahead = [(0, _Ends(deque([(start, 0)]), iter(()), exhausted=True))]
    while ahead:
        number, ends = ahead[-1]
        configuration = ends.pop()
        if ends.exhausted and not ends.found:
            # No other end of this piece is left: nothing of it has to be kept.
            ahead.pop()
        if configuration is None or configuration in tried[number]:
            continue
        if number == len(search.pieces):
            return True
        if ahead:
            tried[number].add(configuration)
        else:
            tried.clear()
        ahead.append((number + 1, _first_ends(search, number, configuration)))
    return False


def _first_ends(search: _Search, number: int, start: _Configuration) -> _Ends:
    """Return the ends of a piece: all of them if they are found soon, else one by one."""
    more = _ends(search, number, start)
    found: deque[_Configuration] = deque()
    for end in more:
        if end is not None:
            found.append(end)
        elif found:
            return _Ends(found, more, exhausted=False)
    return _Ends(found, more, exhausted=True)


class _Seen:
    """The configurations of a piece that were reached; the meter knows what they take."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._configurations: set[Hashable] = set()
        self._bytes = 0
        self.step_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._meter.held_bytes -= self._bytes

    def is_new(self, configuration: tuple[int, int, State, int]) -> bool:
        """Return whether it was never reached before. Raises OverBudgetError."""
        self.step_count += 1
        if self.step_count % _TICK == 0:
            self._meter.check()
        if configuration in self._configurations:
            return False
        self._configurations.add(configuration)
        size = _CONFIGURATION_BYTES + getsizeof(configuration[2])
        self._bytes += size
        self._meter.held_bytes += size
        return True


def _ends(search: _Search, number: int, start: _Configuration) -> Iterator[_Configuration | None]:
    """Yield each end of a piece once, and None now and then, so that the caller can stop."""
    timeline = _Timeline(search.pieces[number])
    frames: list[_Frame] = []
    move: _Move | None = (-1, *start)
    with _Seen(search.meter) as seen:
        while move is not None:
            taken, state, used = move
            settled = _settled(timeline, state, search.model.step)
            ready = timeline.open()
            choices: Iterator[_Move] = iter(())
            if seen.is_new((ready[0] if ready else -1, timeline.taken, state, used)):
                if ready:
                    first = timeline.operations[ready[0]]
                    search.progress.reached((number, first.end, ready[0]), first, state)
                    choices = _choices(search, timeline, ready, state, used)
                else:
                    yield state, used
            if seen.step_count % _TICK == 0:
                yield None
            frames.append(_Frame(choices, (taken, *settled) if taken >= 0 else tuple(settled)))
            move = _next_move(timeline, frames)


def _settled(timeline: _Timeline, state: State, step: Step) -> list[int]:
    """Take every answer that fits the state as it is, and those that stand behind them."""
    settled: list[int] = []
    count = -1
    while count < len(settled):
        count = len(settled)
        for number in timeline.open():
            one = timeline.operations[number]
            if one.passive and step(state, one) == state:
                timeline.take(number)
                settled.append(number)
    return settled


def _choices(
    search: _Search, timeline: _Timeline, ready: Sequence[int], state: State, used: int
) -> Iterator[_Move]:
    """Yield the moves that can come next; those that must precede the first return come first."""
    moves = [
        (number, after, used)
        for number in ready
        if (after := search.model.step(state, timeline.operations[number])) is not None
    ]
    if search.model.answers_first:
        waiting = [one for number in ready if (one := timeline.operations[number]).passive]
        moves.sort(key=lambda move: not _fits_any(search, move[1], waiting))
    yield from moves
    latest = timeline.operations[ready[0]].end
    for alike in search.optional:
        unused = next(((bit, one) for bit, one in alike if not used & bit), None)
        if unused is None or unused[1].call > latest:
            continue
        after = search.model.step(state, unused[1])
        if after is not None and after != state:
            yield -1, after, used | unused[0]


def _fits_any(search: _Search, state: State, waiting: Sequence[Operation]) -> bool:
    return any(search.model.step(state, one) == state for one in waiting)


def _next_move(timeline: _Timeline, frames: list[_Frame]) -> _Move | None:
    """Return the next choice that is left; what led only to the ends of choices is put back."""
    while frames:
        move = next(frames[-1].choices, None)
        if move is not None:
            if move[0] >= 0:
                timeline.take(move[0])
            return move
        for number in reversed(frames.pop().taken):
            timeline.put_back(number)
    return None


def _pieces(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Return these operations, ordered by call, cut wherever all returned before the next call."""
    cut: list[list[Operation]] = []
    latest_end = 0
    for one in operations:
        if not cut or one.call > latest_end:
            cut.append([])
        cut[-1].append(one)
        latest_end = max(latest_end, one.end)
    return cut


def _slot_bits(moments: Sequence[tuple[int, bool, int]], count: int) -> list[int]:
    """Return the bit of each operation; no two that are open at once have the same."""
    bits = [0] * count
    free: list[int] = []
    slot_count = 0
    for _, is_return, number in moments:
        if is_return:
            heappush(free, bits[number])
            continue
        if not free:
            heappush(free, 1 << slot_count)
            slot_count += 1
        bits[number] = heappop(free)
    return bits
