"""A synthetic history while it is made, and the lies to plant in it.

There are sends, the log they led to, and what was read of it. A lie is the smallest one that raises
its anomaly. It is told to the log before any read of it (then all readers agree about it), or to
readers afterwards. It is planted in the middle of key `t-0`, at a record that stands inside the
batches of all consumers, so that it raises what it names and nothing by accident.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

OK, FAIL, INFO = range(3)
NEVER_NS: Final = -1
"""The return of an operation whose end was never seen."""

SEND: Final = np.dtype(
    [
        ("key", np.int32),
        ("process", np.int32),
        ("value", np.int64),
        ("call_ns", np.int64),
        ("return_ns", np.int64),
        ("offset", np.int64),  # as acknowledged; -1 unknown
        ("outcome", np.int8),
    ]
)
"""One send."""

ENTRY: Final = np.dtype(
    [("key", np.int32), ("offset", np.int64), ("value", np.int64), ("time_ns", np.int64)]
)
"""One record of the true log, by key and offset; from `time_ns` on it can be read."""

READING: Final = np.dtype(
    [
        ("process", np.int32),
        ("order", np.int64),  # among the readings of its process
        ("key", np.int32),  # of a final read; -1 of a poll
        ("call_ns", np.int64),
        ("return_ns", np.int64),
        ("outcome", np.int8),
    ]
)
"""One poll or final read."""

READ: Final = np.dtype(
    [("reading", np.int64), ("key", np.int32), ("offset", np.int64), ("value", np.int64)]
)
"""One record read, in the order of its reading (its row among the readings)."""

_KEY: Final = 0
_TAIL: Final = 3
_STRANGER: Final = 1 << 62
"""A value that no producer sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecipe:
    """The properties of the history to make."""

    sends: int = 10_000
    """The sends of all keys and producers together."""
    keys: int = 4
    producers: int = 2
    consumers: int = 2
    """The number of consumers; each reads every key from its first offset on."""
    batch: int = 50
    """Records of a key that a poll returns."""
    crash_rate: float = 0.01
    """The share of sends that crash; half of them are in the log. If positive, every consumer but
    the first crashes in its last poll.
    """
    fail_rate: float = 0.01
    """The share of sends that fail."""
    gap_rate: float = 0.01
    """The share of offsets that hold no record."""
    faults: int = 2
    idempotent: bool = True
    lies: tuple[str, ...] = ()
    """Anomalies to plant, by the names of the catalogue (`LIES`)."""
    seed: int = 0

    @property
    def key_names(self) -> tuple[str, ...]:
        """The keys, by number."""
        return tuple(f"t-{number}" for number in range(self.keys))


@dataclass(slots=True, kw_only=True)
class Draft:
    """The parts of a history, to be changed by lies before it becomes tables."""

    recipe: HistoryRecipe
    rng: np.random.Generator
    sends: NDArray[np.void]
    log: NDArray[np.void]
    readings: NDArray[np.void] = field(default_factory=lambda: np.empty(0, READING))
    reads: NDArray[np.void] = field(default_factory=lambda: np.empty(0, READ))

    def next_value(self, process: int) -> int:
        """Return a value that this producer has not sent yet."""
        mine = self.sends["value"][self.sends["process"] == process]
        return int(mine.max(initial=(process << 40) - 1)) + 1

    def add_send(self, **columns: int) -> None:
        """Add a send after all others."""
        self.sends = np.concatenate([self.sends, _row_of(SEND, columns)])

    def add_entry(self, **columns: int) -> None:
        """Add a record to the log, at its place by key and offset."""
        log = np.concatenate([self.log, _row_of(ENTRY, columns)])
        self.log = log[np.lexsort((log["offset"], log["key"]))]


def _nothing(_: Draft) -> None:
    """Do nothing: this lie is told elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """The planting of an anomaly, and the anomalies that must be reported then, and no others."""

    raises: tuple[str, ...]
    tell_log: Callable[[Draft], None] = _nothing
    tell_readers: Callable[[Draft], None] = _nothing


def _target(draft: Draft) -> NDArray[np.void]:
    """Return an acknowledged record's entry, inside the key and the batches of all consumers."""
    log = draft.log[draft.log["key"] == _KEY]
    recipe = draft.recipe
    acknowledged = draft.sends["value"][draft.sends["outcome"] == OK]
    inside = np.isin(log["value"], acknowledged)
    place = np.arange(len(log))
    for consumer in range(recipe.consumers):
        shift = consumer * recipe.batch // recipe.consumers
        inside &= (place + shift) % recipe.batch % (recipe.batch - 1) != 0
    inside &= (place >= len(log) // 3) & (place < 2 * len(log) // 3)
    candidates = np.flatnonzero(inside)
    assert len(candidates), f"the recipe leaves no room for a lie: {recipe}"
    target: NDArray[np.void] = log[draft.rng.choice(candidates)]
    return target


def _reading_of_first_consumer(draft: Draft, value: int) -> int:
    """Return the poll of the first consumer that returned this value."""
    process = draft.readings["process"][draft.reads["reading"]]
    hit = (draft.reads["value"] == value) & (process == draft.recipe.producers)
    return int(draft.reads["reading"][np.argmax(hit)])


def _end(draft: Draft) -> int:
    """Return the first offset behind the log of the key."""
    return int(draft.log["offset"][draft.log["key"] == _KEY].max()) + 1


def _add_send(draft: Draft, *, offset: int, outcome: int, value: int | None = None) -> int:
    last = draft.sends[-1]
    chosen = draft.next_value(0) if value is None else value
    draft.add_send(
        key=_KEY,
        process=0,
        value=chosen,
        call_ns=int(last["call_ns"]) + 1,
        return_ns=int(last["call_ns"]) + 2 if outcome == OK else NEVER_NS,
        offset=offset,
        outcome=outcome,
    )
    return chosen


def _lose_write(draft: Draft) -> None:
    draft.reads = draft.reads[draft.reads["value"] != _target(draft)["value"]]


def _abort(draft: Draft) -> None:
    send = np.flatnonzero(draft.sends["value"] == _target(draft)["value"])
    draft.sends["outcome"][send] = FAIL
    draft.sends["offset"][send] = -1


def _show_another_value(draft: Draft) -> None:
    """Add a consumer that crashes in its only poll, after it saw a crashed send's value."""
    target, value = _target(draft), _add_send(draft, offset=-1, outcome=INFO)
    poll = _row_of(
        READING,
        {
            "process": draft.recipe.producers + draft.recipe.consumers + 1,
            "order": 0,
            "key": -1,
            "call_ns": int(draft.readings["call_ns"].max()),
            "return_ns": NEVER_NS,
            "outcome": INFO,
        },
    )
    seen = {"reading": len(draft.readings), "key": _KEY, "offset": int(target["offset"])}
    draft.readings = np.concatenate([draft.readings, poll])
    draft.reads = np.concatenate([draft.reads, _row_of(READ, seen | {"value": value})])


def _append_twice(draft: Draft) -> None:
    target, offset = _target(draft), _end(draft)
    time_ns = int(draft.log["time_ns"].max()) + 1
    draft.add_entry(key=_KEY, offset=offset, value=int(target["value"]), time_ns=time_ns)


def _append_a_stranger(draft: Draft) -> None:
    time_ns = int(draft.log["time_ns"].max()) + 1
    draft.add_entry(key=_KEY, offset=_end(draft), value=_STRANGER, time_ns=time_ns)


def _poll_again(draft: Draft) -> None:
    reading = _reading_of_first_consumer(draft, int(_target(draft)["value"]))
    again = draft.readings[reading : reading + 1].copy()
    again["order"] += 1
    again["call_ns"] = again["return_ns"]
    rows = draft.reads[(draft.reads["reading"] == reading) & (draft.reads["key"] == _KEY)]
    rows["reading"] = len(draft.readings)
    draft.readings = np.concatenate([draft.readings, again])
    draft.reads = np.concatenate([draft.reads, rows])


def _skip_batch(draft: Draft) -> None:
    reading = _reading_of_first_consumer(draft, int(_target(draft)["value"]))
    skipped = (draft.reads["reading"] == reading) & (draft.reads["key"] == _KEY)
    draft.reads = draft.reads[~skipped]


def _row_of_target(draft: Draft) -> int:
    value = int(_target(draft)["value"])
    reading = _reading_of_first_consumer(draft, value)
    hit = (draft.reads["reading"] == reading) & (draft.reads["value"] == value)
    return int(np.argmax(hit))


def _return_twice(draft: Draft) -> None:
    row = _row_of_target(draft)
    draft.reads = np.insert(draft.reads, row, draft.reads[row])


def _leave_out(draft: Draft) -> None:
    draft.reads = np.delete(draft.reads, _row_of_target(draft))


def _swap_sends(draft: Draft) -> None:
    """Swap two neighbouring records of one producer, in the log and in their acks."""
    value = int(_target(draft)["value"])
    sends = draft.sends
    mine = np.flatnonzero(
        (sends["key"] == _KEY) & (sends["outcome"] == OK) & (sends["process"] == value >> 40)
    )
    place = int(np.flatnonzero(sends["value"][mine] == value)[0])
    pair = mine[[place, place + 1]]
    entries = np.flatnonzero(np.isin(draft.log["value"], sends["value"][pair]))
    draft.log["value"][entries] = draft.log["value"][entries[::-1]]
    sends["offset"][pair] = sends["offset"][pair[::-1]]


def _acknowledge_beyond(draft: Draft) -> None:
    _add_send(draft, offset=_end(draft), outcome=OK)


def _cut_tail(draft: Draft) -> None:
    final = int(np.flatnonzero(draft.readings["key"] == _KEY)[0])
    rows = np.flatnonzero(draft.reads["reading"] == final)
    draft.reads = np.delete(draft.reads, rows[-_TAIL:])


def _send_again(draft: Draft) -> None:
    _add_send(draft, offset=-1, outcome=INFO, value=int(_target(draft)["value"]))


LIES: Final[Mapping[str, Lie]] = {
    # A consumer that reads past the lost record leaves out a record whose place was acknowledged.
    "lost-write": Lie(raises=("lost-write", "internal-skipped-poll"), tell_readers=_lose_write),
    "aborted-read": Lie(raises=("aborted-read",), tell_readers=_abort),
    "inconsistent-offset": Lie(raises=("inconsistent-offset",), tell_readers=_show_another_value),
    "duplicate": Lie(raises=("duplicate",), tell_log=_append_twice),
    "nonmonotonic-poll": Lie(raises=("nonmonotonic-poll",), tell_readers=_poll_again),
    "skipped-poll": Lie(raises=("skipped-poll", "passed-over"), tell_readers=_skip_batch),
    "internal-nonmonotonic-poll": Lie(
        raises=("internal-nonmonotonic-poll",), tell_readers=_return_twice
    ),
    "internal-skipped-poll": Lie(
        raises=("internal-skipped-poll", "passed-over"), tell_readers=_leave_out
    ),
    "nonmonotonic-send": Lie(raises=("nonmonotonic-send",), tell_log=_swap_sends),
    "unseen": Lie(raises=("unseen",), tell_readers=_acknowledge_beyond),
    "vanished": Lie(raises=("vanished", "lost-write"), tell_readers=_cut_tail),
    "sent-values": Lie(raises=("sent-values",), tell_log=_append_a_stranger),
    "unique-values": Lie(raises=("unique-values",), tell_readers=_send_again),
}
"""The lies by the name of the check that each is for."""


def _row_of(dtype: np.dtype[np.void], columns: Mapping[str, int]) -> NDArray[np.void]:
    """Return an array of one row."""
    row = np.zeros(1, dtype)
    for name in dtype.names or ():
        row[name] = columns[name]
    return row
