"""D3 inconsistent-offset and D4 duplicate: one offset, two values; one value, two offsets.

Both look at the entries of the log: the distinct (offset, value) pairs that polls of whatever
outcome were given and that acknowledgements named. A log is append-only and an offset is never
given twice, so two values at one offset mean that a client was shown, or promised, a record that
another log replaced. A value at two offsets was appended twice: a producer without idempotence may
do that by retrying, and it is then reported as allowed. So may an idempotent one that gave up on a
send: whether it was appended is unknown, so the client begins a new epoch, in which the broker
cannot tell what it then sends again from what is new. It sends again only what was under way, so a
value that was acknowledged before its process first gave up is never excused. Of the others the
logs say who is to blame, where there are any (`checkers.data_plane.resent`); what is said of them
here holds where the logs do not tell.

Sound because every entry comes from a record that a client was given or from an acknowledgement
with its offset; a send that may not have happened adds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.key_summary import times_given_up
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.membership import has_repeats, is_among
from fencepost.checkers.proof import Proof

_ENTRIES_MAX = 8
"""Operations that a proof names a pair; two would do, all of them may be thousands."""


def inconsistent_offsets(log: KeyLog) -> Found:
    """Find offsets at which two values stand; one anomaly an offset."""
    first, count = _groups(log.log.offset)
    cases = _told_twice(log)
    first, count = first[count > 1], count[count > 1]
    if not len(first):
        return none("inconsistent-offset", log.key, cases=cases)
    witnesses = _Witnesses.of(log)

    def proof(number: int) -> Proof:
        entries = range(int(first[number]), int(first[number] + count[number]))
        offset = int(log.log.offset[entries[0]])
        values = tuple(int(log.log.value[entry]) for entry in entries)
        return Proof.of(
            f"offset {{offset}} holds {{values_count}} values: {{each}}{_more(values)}",
            operations=witnesses.operations(list(entries)),
            offsets={"offset": offset},
            values=_listed(values),
            values_count=len(values),
        )

    return found(
        "inconsistent-offset",
        log.key,
        cases=cases,
        never=np.arange(len(first)),
        proof=proof,
        order=log.log.offset[first],
    )


def duplicates(log: KeyLog) -> Found:
    """Find values that stand at two offsets or more; one anomaly a value."""
    if not has_repeats(log.log.value):
        return none("duplicate", log.key, cases=_protected_count(log, len(log.log)))
    order = np.argsort(log.log.value, kind="stable")
    first, count = _groups(log.log.value[order])
    cases = _protected_count(log, len(first))
    first, count = first[count > 1], count[count > 1]
    witnesses = _Witnesses.of(log)

    def proof(number: int) -> Proof:
        entries = order[first[number] : first[number] + count[number]].tolist()
        value = int(log.log.value[entries[0]])
        offsets = tuple(int(log.log.offset[entry]) for entry in entries)
        return Proof.of(
            f"value {{value}} stands at {{offsets_count}} offsets: {{each}}{_more(offsets)}",
            operations=witnesses.operations(entries),
            offsets=_listed(offsets),
            values={"value": value},
            offsets_count=len(offsets),
        )

    values = log.log.value[order[first]]
    legal = _unprotected(log, values) if log.setting.idempotent else np.ones(len(first), np.bool_)
    never, allowed = np.flatnonzero(~legal), np.flatnonzero(legal)
    return found(
        "duplicate",
        log.key,
        cases=cases,
        never=never,
        allowed=allowed,
        proof=proof,
        order=values,
    )


def _told_twice(log: KeyLog) -> int:
    """Count offsets of which two rows or more tell.

    Where a send and a read tell of one entry, these are two. Of the few other entries, the rows
    are counted.
    """
    both = log.entry_sent & log.entry_returned
    twice = np.zeros(log.log.held_count, dtype=np.bool_)
    twice[log.log.position[both]] = True
    other = np.append(~both, False)
    rows = [entry[other[entry]] for entry in (log.send_entry, log.read_entry)]
    position = log.log.position[np.concatenate(rows)]
    twice |= np.bincount(position, minlength=len(twice)) > 1
    return int(np.count_nonzero(twice))


def _protected_count(log: KeyLog, value_count: int) -> int:
    """Return the number of values of the log that surely no client appended twice.

    `value_count`: of the distinct values of the log.
    """
    unprotected = _under_way(log)
    if not log.setting.idempotent or not np.any(unprotected):
        return value_count
    entry, value = log.send_entry[unprotected], log.sends.value[unprotected]
    read = is_among(value[entry < 0], log.log.value[~log.entry_sent])
    return value_count - int(np.count_nonzero(entry >= 0)) - int(np.count_nonzero(read))


def _unprotected(log: KeyLog, values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the values that their client may have appended twice."""
    return np.isin(values, log.sends.value[_under_way(log)])


def _under_way(log: KeyLog) -> NDArray[np.bool_]:
    """Return a mask of the sends that had not ended when their process first gave up on one."""
    gave_up_ns = log.around.gave_up_ns if log.around else times_given_up(log.sends)
    if not gave_up_ns:
        return np.zeros(len(log.sends), dtype=np.bool_)
    processes = np.array(sorted(gave_up_ns), dtype=np.int64)
    first_ns = np.array([gave_up_ns[one] for one in processes.tolist()], dtype=np.int64)
    place = np.searchsorted(processes, log.sends.process).clip(max=len(processes) - 1)
    theirs = processes[place] == log.sends.process
    under_way: NDArray[np.bool_] = theirs & (log.sends.return_ns >= first_ns[place])
    return under_way


def _groups(ordered: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and the length of each run of equal numbers."""
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    return first, np.diff(first, append=len(ordered))


@dataclass(frozen=True, slots=True)
class _Witnesses:
    """For each entry of the log, the first send and the first read row that stand at it; or -1."""

    log: KeyLog
    send: NDArray[np.int64]
    read: NDArray[np.int64]

    @staticmethod
    def of(log: KeyLog) -> "_Witnesses":
        size = len(log.log)
        return _Witnesses(
            log, _first_row(log.send_entry, size=size), _first_row(log.read_entry, size=size)
        )

    def operations(self, entries: list[int]) -> tuple[int, ...]:
        """Return the operations that were promised or given the first few of these entries."""
        few = entries[:_ENTRIES_MAX]
        sends = [self.log.sends.operation[row] for row in self.send[few] if row >= 0]
        reads = [self.log.reads.operation[row] for row in self.read[few] if row >= 0]
        return tuple(sorted({int(operation) for operation in (*sends, *reads)}))


def _first_row(entry: NDArray[np.int64], *, size: int) -> NDArray[np.int64]:
    first = np.full(size + 1, -1, dtype=np.int64)
    # Of several rows at one entry, the last one written here is the first one of the history.
    first[entry[::-1]] = np.arange(len(entry))[::-1]
    return first[:-1]


def _more(numbers: tuple[int, ...]) -> str:
    return ", …" if len(numbers) > _ENTRIES_MAX else ""


def _listed(numbers: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
    """Return the numbers by name: each that the sentence says, and the others."""
    return {"each": numbers[:_ENTRIES_MAX], "other": numbers[_ENTRIES_MAX:]}


_INCONSISTENT_OFFSET: Final = CatalogueEntry.of(
    """D3 inconsistent-offset: One offset, two values.

    Two values stand at one offset, in reads of whatever outcome and in the offsets of sends that
    must have happened.

    Meaning: Two readers, or a producer and a reader, were shown different logs.
    Case: an offset that was acknowledged or read more than once
    Source: Jepsen, workload `kafka`, `inconsistent-offsets`
    """,
    nearness=Nearness.RECORD,
    rests_on=("unique-values", "sent-values"),
    needs=("operations", "records"),
)

_DUPLICATE: Final = CatalogueEntry.of(
    """D4 duplicate: One value, two offsets.

    One value stands at two offsets.

    Meaning: A record was appended twice, as a retry may do without idempotence.
    Allowed if: the producers were not idempotent; or the logs have each copy under a producer epoch
    of its own: then the client sent it again, and no broker could tell; or the logs do not tell,
    and it had not been acknowledged when the one that sent it first gave up on a send: its next
    epoch knows nothing of the one before. Never, where a log has two copies under one producer id
    and epoch
    Case: a value of the log that had been acknowledged when its producer first gave up on a send,
    if it ever did
    Source: Jepsen, workload `kafka`, `duplicate`; KIP-98; KIP-360 for epochs that the client begins
    """,
    nearness=Nearness.RECORD,
    promise="idempotent",
    rests_on=("unique-values", "sent-values"),
    needs=("operations", "records"),
)

CHECKS: Final = (
    KeyCheck(
        entry=_INCONSISTENT_OFFSET,
        kernel=inconsistent_offsets,
        by_place=True,
    ),
    KeyCheck(
        entry=_DUPLICATE,
        kernel=duplicates,
    ),
)
