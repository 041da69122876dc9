"""Objects that answer made-up operations, a piece at a time: what each model's clients would see.

A piece is what some operations of one key ask for, in the order in which they take effect. An
object answers it from its state and keeps the new one, so that a key of any length is made in
pieces of a bounded size. Values are unique over the whole history.

Numpy throughout. Nothing here is used by a check.
"""

from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fencepost.history.models import Model

NOTHING: Final = np.iinfo(np.int64).min
"""The value that stands for null."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FS: Final = {
    Model.VERSIONED_REGISTER: ("read", "write", "cas"),
    Model.REGISTER: ("read", "write", "cas"),
    Model.LOG: ("read", "append"),
    Model.SET: ("read", "add"),
    Model.COUNTER: ("read", "add"),
}
"""The values of `f` for each model; 0 reads."""

_SWAP: Final = 2
_REFUSED_SHARE: Final = 0.2
_STALE_MAX: Final = 4
_WINDOW: Final = 1 << 10
"""The distance behind its end at which a log is still read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOperations:
    """Operations of one key in the order in which they take effect."""

    f: Ints
    """The places in `FS`."""
    value: Ints
    """The values that operations would write, each unique."""
    happens: Flags
    """True: it takes effect, now; False: never."""
    rng: np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers to clients, as columns of MODEL_OPERATIONS; NOTHING for null."""

    refused: Flags
    expected: Ints
    version: Ints
    value: Ints
    values: tuple[Ints, Ints] | None = None
    """Lengths and elements of what reads return, if the model has such."""


class ModelObject(Protocol):
    """An object of a model, with its state."""

    def answers(self, asked: KeyOperations) -> Answers:
        """Let these operations take effect, and return their answers."""
        ...


@dataclass(slots=True)
class VersionedRegister:
    """A register whose changes are counted."""

    version: int = 0
    value: int = NOTHING

    def answers(self, asked: KeyOperations) -> Answers:
        """Answer reads with version and value; a cas expects the present version, or is refused."""
        count = len(asked.f)
        swaps, reads = asked.f == _SWAP, asked.f == 0
        refused = swaps & asked.happens & (asked.rng.random(count) < _REFUSED_SHARE)
        changes = ~reads & asked.happens & ~refused
        version = self.version + np.cumsum(changes)
        before = version - changes
        values = np.append(self.value, asked.value[changes])
        # One that is wrong on purpose expects a version that is gone, or one that is to come.
        stale = before - asked.rng.integers(1, _STALE_MAX, size=count)
        wrong = np.where(stale < 0, before + 1, stale)
        expected = np.where(refused, wrong, before)
        seen = values[version - self.version]
        if count:
            self.version, self.value = int(version[-1]), int(values[-1])
        return Answers(
            refused=refused,
            expected=np.where(swaps, expected, NOTHING),
            version=np.where(refused, NOTHING, version),
            value=np.where(reads, seen, asked.value),
        )


@dataclass(slots=True)
class Register:
    """A register without versions: a cas compares values."""

    value: int = NOTHING

    def answers(self, asked: KeyOperations) -> Answers:
        """Answer reads with the value; a cas expects the present value, or is refused."""
        count = len(asked.f)
        swaps, reads = asked.f == _SWAP, asked.f == 0
        refused = swaps & asked.happens & (asked.rng.random(count) < _REFUSED_SHARE)
        changes = ~reads & asked.happens & ~refused
        values = np.append(self.value, asked.value[changes])
        place = np.cumsum(changes)
        # No operation writes the negative of a value.
        expected = np.where(refused, -1 - asked.value, values[place - changes])
        self.value = int(values[-1])
        return Answers(
            refused=refused,
            expected=np.where(swaps, expected, NOTHING),
            version=np.full(count, NOTHING),
            value=np.where(reads, values[place], asked.value),
        )


@dataclass(slots=True)
class AppendOnlyLog:
    """A log: an appended value gets the next offset, for good."""

    count: int = 0
    tail: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """The last values, at most `_WINDOW`."""

    def answers(self, asked: KeyOperations) -> Answers:
        """Answer reads, each of an offset near the end or of the next one."""
        reads = asked.f == 0
        appends = ~reads & asked.happens
        end = self.count + np.cumsum(appends)
        values = np.concatenate([self.tail, asked.value[appends]])
        first = self.count - len(self.tail)
        back = asked.rng.integers(0, _WINDOW, size=len(reads))
        wanted = np.maximum(np.maximum(first, end - _WINDOW), end - back)
        there = wanted < end
        found = np.full(len(reads), NOTHING)
        found[there] = values[wanted[there] - first]
        self.count += int(appends.sum())
        self.tail = values[-_WINDOW:]
        return Answers(
            refused=np.zeros(len(reads), bool),
            expected=np.full(len(reads), NOTHING),
            version=np.where(reads, wanted, end - appends),
            value=np.where(reads, found, asked.value),
        )


@dataclass(slots=True)
class GrowOnlySet:
    """Elements are added, and all of them are read."""

    elements: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def answers(self, asked: KeyOperations) -> Answers:
        """Answer reads with every element that is there."""
        reads = asked.f == 0
        adds = ~reads & asked.happens
        sizes = len(self.elements) + np.cumsum(adds)
        self.elements = np.concatenate([self.elements, asked.value[adds]])
        lengths = np.where(reads, sizes, 0)
        ends = np.cumsum(lengths)
        within = np.arange(int(ends[-1]) if len(ends) else 0)
        within -= np.repeat(ends - lengths, lengths)
        nothing = np.full(len(reads), NOTHING)
        return Answers(
            refused=np.zeros(len(reads), bool),
            expected=nothing,
            version=nothing,
            value=np.where(reads, NOTHING, asked.value),
            values=(lengths, self.elements[within]),
        )


@dataclass(slots=True)
class Counter:
    """Ones are added, and their sum is read."""

    total: int = 0

    def answers(self, asked: KeyOperations) -> Answers:
        """Answer reads with the number of ones that were added."""
        reads = asked.f == 0
        sums = self.total + np.cumsum(~reads & asked.happens)
        if len(sums):
            self.total = int(sums[-1])
        nothing = np.full(len(reads), NOTHING)
        return Answers(
            refused=np.zeros(len(reads), bool),
            expected=nothing,
            version=nothing,
            value=np.where(reads, sums, 1),
        )


OBJECTS: Final[dict[Model, type[ModelObject]]] = {
    Model.VERSIONED_REGISTER: VersionedRegister,
    Model.REGISTER: Register,
    Model.LOG: AppendOnlyLog,
    Model.SET: GrowOnlySet,
    Model.COUNTER: Counter,
}
"""The object of each model whose keys are objects of their own."""
