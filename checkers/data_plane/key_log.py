"""Everything that the checks of the data plane share about one key, computed once.

The terms are those of Jepsen's Kafka workload, made precise here:

- an *ok read* is a poll or a final read that is ok. A final read counts like any other read;
- a send *must have happened* if it is ok, or if it is info and an ok read returned one of the
  values of its operation. Nothing else is ever required of an info operation;
- a value was *returned* if some ok read returned it, at whatever offset;
- the *bound* is the highest offset that an ok read reached: as positions are the ranks of offsets,
  it is at or above the same records as the highest position;
- a final read is *complete* if it is ok: it read the key from its first to its last offset.

Which sends were returned is found without a sort: a send that is ok stands at its own entry of the
log, and if an ok read returned that entry, it was returned. The few sends left (crashed, failed,
missing, or acknowledged without an offset) are looked up among the few entries left: those that no
ok send stands at. That is exact as long as no two sends carry one value, which is an assumption
that is checked first (`checkers.grounds.assumptions`); a key that breaks it is not judged.

A record takes about 100 bytes here, so that a key of eight million takes less than a gigabyte. A
larger key is judged in parts of that size (`checkers.data_plane.large.segment`).
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.data_plane.key_summary import KeySummary, bound_of
from fencepost.checkers.data_plane.log import Log, build_log
from fencepost.checkers.data_plane.steps import (
    Carried,
    OddSteps,
    Pairs,
    StepCounts,
    read_steps,
    send_steps,
    steps_with,
)
from fencepost.checkers.membership import is_among
from fencepost.checkers.rows import INFO, OK, UNKNOWN_OFFSET, Rows, no_rows, split
from fencepost.checkers.setting import FinalRead, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLog:
    """One key: its rows, its log, and what follows from them. Entry -1: not in the log.

    Or some rows of a key (`checkers.data_plane.large.segment`), which are judged with their
    surroundings.
    """

    key: str
    setting: Setting
    around: KeySummary | None
    """The surroundings from the whole key; None if these are all its rows."""
    final_reads: tuple[FinalRead, ...]
    """The complete final reads of this key, by call."""
    sends: Rows
    reads: Rows
    """Polled records, of final reads too."""
    final: NDArray[np.bool_]
    """A mask of the reads that belong to final reads."""
    unlocated: bool
    """Some read does not know its offset."""
    log: Log
    send_entry: NDArray[np.int64]
    """The entry of each send that must have happened and knows its offset."""
    read_entry: NDArray[np.int64]
    entry_sent: NDArray[np.bool_]
    """Entries at which a send that must have happened was acknowledged."""
    entry_returned: NDArray[np.bool_]
    """Entries that an ok read returned."""
    happened: NDArray[np.bool_]
    """Sends that must have happened."""
    returned: NDArray[np.bool_]
    """Sends whose value some ok read returned."""
    bound: int
    """The highest offset that an ok read reached; `UNKNOWN_OFFSET` if none read anything."""
    inside: OddSteps
    """Steps inside an operation whose delta is not 1."""
    across: OddSteps
    """Steps from a process's ok poll to its next whose delta is not 1."""
    sent_back: Pairs
    """Neighbouring sends of a process whose offsets go back."""
    step_counts: StepCounts
    """The counts of all judged steps of these three kinds."""


def key_log(key: str, records: pa.Table, setting: Setting) -> KeyLog:
    """Return the key log of `records`: `rows.COLUMNS` of RECORDS, of this key alone."""
    sends, reads, final = split(records)
    nothing = Carried.nothing()
    steps = read_steps(reads, final=final, carried=nothing, info_polls=setting.info_polls)
    sent = send_steps(sends, carried=nothing)
    log = log_of_rows(key, setting, sends=sends, reads=reads, final=final)
    return replace(
        log,
        inside=steps_with(steps.inside, delta=_delta(log.log, steps.inside), info_polls={}),
        across=steps_with(
            steps.across, delta=_delta(log.log, steps.across), info_polls=setting.info_polls
        ),
        sent_back=sent.back,
        step_counts=StepCounts(
            inside=steps.inside_count, across=steps.across_count, sends=sent.count
        ),
    )


def log_of_rows(
    key: str,
    setting: Setting,
    *,
    sends: Rows,
    reads: Rows,
    final: NDArray[np.bool_],
    around: KeySummary | None = None,
) -> KeyLog:
    """Return the key log of these rows, without steps; `around` if they are a part of the key."""
    log, send_entry, read_entry = _log(sends, reads, around)
    entry_sent = _marked(log, send_entry)
    entry_returned = _marked(log, read_entry[reads.ok])
    returned = _marked_of(send_entry, entry_returned)
    unlocated = read_entry < 0
    elsewhere = [log.value[entry_returned & ~entry_sent], reads.value[unlocated & reads.ok]]
    returned[~returned] = is_among(sends.value[~returned], np.concatenate(elsewhere))
    return KeyLog(
        key=key,
        setting=setting,
        around=around,
        final_reads=_final_reads(key, setting),
        sends=sends,
        reads=reads,
        final=final,
        unlocated=bool(np.any(unlocated)),
        log=log,
        send_entry=send_entry,
        read_entry=read_entry,
        entry_sent=entry_sent,
        entry_returned=entry_returned,
        happened=_happened(sends, returned, around),
        returned=returned,
        bound=around.bound if around else bound_of(reads),
        inside=_NO_STEPS,
        across=_NO_STEPS,
        sent_back=_NO_STEPS.pairs,
        step_counts=StepCounts.summed(()),
    )


def rows_at(
    log: KeyLog,
    entries: NDArray[np.bool_],
    *,
    among: NDArray[np.int64],
    absent: bool = False,
) -> NDArray[np.int64]:
    """Return the reads at these entries, or at unknown offsets, whose values are among those.

    `absent`: whose values are not.
    """

    def wanted(values: NDArray[np.int64]) -> NDArray[np.bool_]:
        return is_among(values, among) ^ absent

    suspect = np.flatnonzero(entries)
    suspect = suspect[wanted(log.log.value[suspect])]
    if not len(suspect) and not log.unlocated:
        return suspect
    marked = np.zeros(len(entries) + 1, dtype=np.bool_)
    marked[suspect] = True
    marked[-1] = log.unlocated
    row = np.flatnonzero(marked[log.read_entry])
    return row[wanted(log.reads.value[row])] if log.unlocated else row


def _log(
    sends: Rows, reads: Rows, around: KeySummary | None
) -> tuple[Log, NDArray[np.int64], NDArray[np.int64]]:
    """Return the log, and the entry of each send and of each read."""
    seen_info = _seen_info(sends, reads, around)
    in_log = (sends.offset != UNKNOWN_OFFSET) & ((sends.outcome == OK) | seen_info)
    located = reads.offset != UNKNOWN_OFFSET
    log, entry = build_log(
        np.concatenate([sends.offset[in_log], reads.offset[located]]),
        np.concatenate([sends.value[in_log], reads.value[located]]),
    )
    send_entry = np.full(len(sends), -1, dtype=np.int64)
    sent_count = int(np.count_nonzero(in_log))
    send_entry[in_log] = entry[:sent_count]
    if len(reads) == len(entry) - sent_count:
        return log, send_entry, entry[sent_count:]
    read_entry = np.full(len(reads), -1, dtype=np.int64)
    read_entry[located] = entry[sent_count:]
    return log, send_entry, read_entry


def _seen_info(sends: Rows, reads: Rows, around: KeySummary | None) -> NDArray[np.bool_]:
    """Return info sends that must have happened although they know their offset (very rare)."""
    info: NDArray[np.bool_] = (sends.outcome == INFO) & (sends.offset != UNKNOWN_OFFSET)
    if not np.any(info):
        return info
    if around:
        return info & is_among(sends.operation, around.happened)
    returned = is_among(sends.value, reads.value[reads.ok])
    return info & _happened(sends, returned, None)


def _marked(log: Log, entry: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the entries of the log that occur in `entry`."""
    marked = np.zeros(len(log) + 1, dtype=np.bool_)
    marked[entry] = True
    return marked[:-1]


def _marked_of(entry: NDArray[np.int64], marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether the entry of each row is marked; rows outside the log are not."""
    return np.append(marked, np.False_)[entry]


def _happened(
    sends: Rows, returned: NDArray[np.bool_], around: KeySummary | None
) -> NDArray[np.bool_]:
    """Return sends that are ok, or info with a value of their operation returned."""
    happened: NDArray[np.bool_] = sends.outcome == OK
    info = np.flatnonzero(sends.outcome == INFO)
    operation = sends.operation[info]
    seen = operation[returned[info]]
    if around:
        seen = np.concatenate([seen, around.happened])
    happened[info] = is_among(operation, seen)
    return happened


def _final_reads(key: str, setting: Setting) -> tuple[FinalRead, ...]:
    mine = (read for read in setting.final_reads if read.key == key)
    return tuple(sorted(mine, key=lambda read: (read.call_ns, read.operation)))


def _delta(log: Log, pairs: Pairs) -> NDArray[np.int64]:
    return log.positions(pairs.after.offset) - log.positions(pairs.before.offset)


_NO_STEPS: Final = steps_with(
    Pairs(before=no_rows(), after=no_rows()), delta=np.empty(0, dtype=np.int64), info_polls={}
)
