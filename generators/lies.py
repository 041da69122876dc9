"""Lies to plant in a synthetic history: each the smallest one that raises its anomaly.

A lie is told to the log before any read of it (then all readers agree about it), or to readers
afterwards. It is planted in the middle of key `t-0`, at a record that stands inside the batches of
all consumers, so that it raises what it names and nothing by accident.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from generators.draft import FAIL, INFO, NEVER_NS, OK, READ, READING, Draft, row_of

__all__ = ["LIES", "Lie"]

_KEY: Final = 0
_TAIL: Final = 3
_STRANGER: Final = 1 << 62
"""A value that no producer sends."""


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
    poll = row_of(
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
    draft.reads = np.concatenate([draft.reads, row_of(READ, seen | {"value": value})])


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
    "skipped-poll": Lie(raises=("skipped-poll",), tell_readers=_skip_batch),
    "internal-nonmonotonic-poll": Lie(
        raises=("internal-nonmonotonic-poll",), tell_readers=_return_twice
    ),
    "internal-skipped-poll": Lie(raises=("internal-skipped-poll",), tell_readers=_leave_out),
    "nonmonotonic-send": Lie(raises=("nonmonotonic-send",), tell_log=_swap_sends),
    "unseen": Lie(raises=("unseen",), tell_readers=_acknowledge_beyond),
    "vanished": Lie(raises=("vanished", "lost-write"), tell_readers=_cut_tail),
    "sent-values": Lie(raises=("sent-values",), tell_log=_append_a_stranger),
    "unique-values": Lie(raises=("unique-values",), tell_readers=_send_again),
}
"""The lies by the name of the check that each is for."""
