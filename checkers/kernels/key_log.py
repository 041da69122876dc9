"""Everything that the checks of the data plane share about one key, computed once.

The terms are those of Jepsen's Kafka workload, made precise here:

- an *ok read* is a poll or a final read that is ok. A final read counts like any other read;
- a send *must have happened* if it is ok, or if it is info and an ok read returned one of the
  values of its operation. Nothing else is ever required of an info operation;
- a value was *returned* if some ok read returned it, at whatever offset;
- the *bound* is the highest position that an ok read reached;
- a final read is *complete* if it is ok: it read the key from its first to its last offset.

Which sends were returned is found without a sort: a send that is ok stands at its own entry of the
log, and if an ok read returned that entry, it was returned. The few sends left (crashed, failed,
missing, or acknowledged without an offset) are looked up among the few entries left: those that no
ok send stands at. That is exact as long as no two sends carry one value, which is an assumption
that is checked first (`checkers.assumptions`); a key that breaks it is not judged.

One key fits in memory: a record takes about 100 bytes here, so that ten million of them, hours of
load on one partition, take a gigabyte.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.kernels.log import Log, build_log
from checkers.kernels.membership import is_among
from checkers.kernels.rows import INFO, OK, UNKNOWN_OFFSET, Rows, split
from checkers.kernels.steps import Steps, steps_across, steps_inside

__all__ = ["FinalRead", "KeyLog", "Setting", "key_log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRead:
    """A final read of a key that is complete; it may have returned nothing at all."""

    operation: int
    key: str
    call_ns: int
    return_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What must be known beside the records of a key to judge it."""

    idempotent: bool = True
    """Producers were promised that a retry adds nothing and that order is kept."""
    consume: str = "assign"
    """How consumers got their keys: "assign", "subscribe" or "both"."""
    final_reads: tuple[FinalRead, ...] = ()
    """The complete ones, of all keys."""
    info_polls: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)
    """Operation indices, ascending, of polls whose records may have been lost, by process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLog:
    """One key: its rows, its log, and what follows from them. Entry -1: not in the log."""

    key: str
    setting: Setting
    final_reads: tuple[FinalRead, ...]
    """The complete final reads of this key, by call."""
    sends: Rows
    reads: Rows
    """Polled records, of final reads too."""
    final: NDArray[np.bool_]
    """Which of the reads are of final reads."""
    log: Log
    send_entry: NDArray[np.int64]
    send_position: NDArray[np.int64]
    """-1 if its offset is not known, or it may not have happened."""
    read_entry: NDArray[np.int64]
    read_position: NDArray[np.int64]
    """-1 if its offset is not known."""
    entry_sent: NDArray[np.bool_]
    """Entries at which a send that must have happened was acknowledged."""
    happened: NDArray[np.bool_]
    """Sends that must have happened."""
    returned: NDArray[np.bool_]
    """Sends whose value some ok read returned."""
    bound: int
    """The highest position that an ok read reached; -1 if none read anything."""
    inside: Steps
    """Steps inside an operation whose delta is not 1."""
    across: Steps
    """Steps from a process's ok poll to its next whose delta is not 1."""


def key_log(key: str, records: pa.Table, setting: Setting) -> KeyLog:
    """The key log of `records`: `rows.COLUMNS` of RECORDS, of this key alone."""
    sends, reads, final = split(records)
    log, send_entry, read_entry = _log(sends, reads)
    entry_sent = _marked(log, send_entry)
    entry_returned = _marked(log, read_entry[reads.ok])
    returned = _marked_of(send_entry, entry_returned)
    unlocated = reads.value[reads.ok & (read_entry < 0)]
    elsewhere = np.concatenate([log.value[entry_returned & ~entry_sent], unlocated])
    returned[~returned] = is_among(sends.value[~returned], elsewhere)
    position = _position(log, read_entry)
    return KeyLog(
        key=key,
        setting=setting,
        final_reads=_final_reads(key, setting),
        sends=sends,
        reads=reads,
        final=final,
        log=log,
        send_entry=send_entry,
        send_position=_position(log, send_entry),
        read_entry=read_entry,
        read_position=position,
        entry_sent=entry_sent,
        happened=_happened(sends, returned),
        returned=returned,
        bound=int(log.position[entry_returned].max(initial=-1)),
        inside=steps_inside(reads, position=position),
        across=steps_across(reads, final=final, position=position, info_polls=setting.info_polls),
    )


def _log(sends: Rows, reads: Rows) -> tuple[Log, NDArray[np.int64], NDArray[np.int64]]:
    """The log, and the entry of each send and of each read."""
    in_log = (sends.offset != UNKNOWN_OFFSET) & ((sends.outcome == OK) | _seen_info(sends, reads))
    located = reads.offset != UNKNOWN_OFFSET
    log, entry = build_log(
        np.concatenate([sends.offset[in_log], reads.offset[located]]),
        np.concatenate([sends.value[in_log], reads.value[located]]),
    )
    send_entry = np.full(len(sends), -1, dtype=np.int64)
    read_entry = np.full(len(reads), -1, dtype=np.int64)
    sent_count = int(np.count_nonzero(in_log))
    send_entry[in_log] = entry[:sent_count]
    read_entry[located] = entry[sent_count:]
    return log, send_entry, read_entry


def _seen_info(sends: Rows, reads: Rows) -> NDArray[np.bool_]:
    """Info sends that must have happened although they know their offset (hardly ever any)."""
    info: NDArray[np.bool_] = (sends.outcome == INFO) & (sends.offset != UNKNOWN_OFFSET)
    if not np.any(info):
        return info
    returned = is_among(sends.value, reads.value[reads.ok])
    return info & _happened(sends, returned)


def _marked(log: Log, entry: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The entries of the log that occur in `entry`."""
    marked = np.zeros(len(log), dtype=np.bool_)
    marked[entry[entry >= 0]] = True
    return marked


def _marked_of(entry: NDArray[np.int64], marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each row, whether its entry is marked; rows outside the log are not."""
    return np.append(marked, np.False_)[entry]


def _happened(sends: Rows, returned: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Sends that are ok, or info with a value of their operation returned."""
    happened: NDArray[np.bool_] = sends.outcome == OK
    info = np.flatnonzero(sends.outcome == INFO)
    operation = sends.operation[info]
    happened[info] = is_among(operation, operation[returned[info]])
    return happened


def _final_reads(key: str, setting: Setting) -> tuple[FinalRead, ...]:
    mine = (read for read in setting.final_reads if read.key == key)
    return tuple(sorted(mine, key=lambda read: (read.call_ns, read.operation)))


def _position(log: Log, entry: NDArray[np.int64]) -> NDArray[np.int64]:
    """The position of each entry; -1 of entry -1."""
    return np.append(log.position, np.int64(-1))[entry]
