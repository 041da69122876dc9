"""D3 inconsistent-offset and D4 duplicate: one offset, two values; one value, two offsets.

Both look at the entries of the log: the distinct (offset, value) pairs that polls of whatever
outcome were given and that acknowledgements named. A log is append-only and an offset is never
given twice, so two values at one offset mean that somebody was shown, or promised, a record that
another log replaced. A value at two offsets was appended twice: a producer without idempotence may
do that by retrying, and it is then reported as allowed.

Sound because every entry comes from a record that somebody was given or from an acknowledgement
with its offset; a send that may not have happened adds nothing.

Source: Jepsen's Kafka workload (`inconsistent-offsets`, `duplicate`); KIP-98 for idempotence.
"""

import numpy as np
from numpy.typing import NDArray

from checkers.anomaly import Found, Proof, found
from checkers.kernels.key_log import KeyLog

__all__ = ["duplicates", "inconsistent_offsets"]

_OPERATIONS_MAX = 8
"""Operations that a proof names a pair; two would do, all of them may be thousands."""


def inconsistent_offsets(log: KeyLog) -> Found:
    """Offsets at which two values stand; one anomaly an offset."""
    first, count = _groups(log.log.offset)
    first, count = first[count > 1], count[count > 1]

    def proof(number: int) -> Proof:
        entries = range(int(first[number]), int(first[number] + count[number]))
        offset = int(log.log.offset[entries[0]])
        values = tuple(int(log.log.value[entry]) for entry in entries)
        return Proof(
            operations=_witnesses(log, list(entries)),
            offsets=(offset,),
            values=values,
            detail=f"offset {offset} holds {len(values)} values: {_words(values)}",
        )

    return found("inconsistent-offset", log.key, never=np.arange(len(first)), proof=proof)


def duplicates(log: KeyLog) -> Found:
    """Values that stand at two offsets or more; one anomaly a value."""
    if not _has_duplicates(log.log.value):
        return found("duplicate", log.key, never=np.arange(0), proof=_no_proof)
    order = np.argsort(log.log.value, kind="stable")
    first, count = _groups(log.log.value[order])
    first, count = first[count > 1], count[count > 1]

    def proof(number: int) -> Proof:
        entries = order[first[number] : first[number] + count[number]].tolist()
        value = int(log.log.value[entries[0]])
        offsets = tuple(int(log.log.offset[entry]) for entry in entries)
        return Proof(
            operations=_witnesses(log, entries),
            offsets=offsets,
            values=(value,),
            detail=f"value {value} stands at {len(offsets)} offsets: {_words(offsets)}",
        )

    numbers, nothing = np.arange(len(first)), np.arange(0)
    never, allowed = (numbers, nothing) if log.setting.idempotent else (nothing, numbers)
    return found("duplicate", log.key, never=never, allowed=allowed, proof=proof)


def _has_duplicates(values: NDArray[np.int64]) -> bool:
    ordered = np.sort(values)
    return bool(np.any(ordered[1:] == ordered[:-1]))


def _groups(ordered: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each run of equal numbers starts, and how long it is."""
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    return first, np.diff(first, append=len(ordered))


def _witnesses(log: KeyLog, entries: list[int]) -> tuple[int, ...]:
    """For each entry, an operation that was promised or given it: the send if there is one."""
    operations = []
    for entry in entries[:_OPERATIONS_MAX]:
        send = np.flatnonzero(log.send_entry == entry)
        read = np.flatnonzero(log.read_entry == entry)
        operations += log.sends.operation[send[:1]].tolist()
        operations += log.reads.operation[read[:1]].tolist()
    return tuple(sorted(set(operations)))


def _words(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(str(number) for number in numbers[:_OPERATIONS_MAX])
    return shown if len(numbers) <= _OPERATIONS_MAX else f"{shown}, …"


def _no_proof(number: int) -> Proof:
    raise AssertionError(f"nothing was found, so anomaly {number} has no proof")
