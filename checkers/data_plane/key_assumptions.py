"""The assumptions of the checks of a key about the history, checked first on the same rows.

A broken assumption is unknown, with its proof, and never invalid.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog, rows_at
from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.membership import has_repeats
from fencepost.checkers.proof import Proof

_SENDS_MAX: Final = 8
"""Sends that a proof names."""


def unique_values(log: KeyLog) -> Found:
    """Find values that more than one send carries."""
    if not has_repeats(log.sends.value):
        return none("unique-values", log.key, cases=len(log.sends))
    order = np.argsort(log.sends.value, kind="stable")
    ordered = log.sends.value[order]
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    first = np.searchsorted(ordered, repeated)
    end = np.searchsorted(ordered, repeated, side="right")

    def proof(number: int) -> Proof:
        value, sends = int(repeated[number]), order[first[number] : end[number]]
        return Proof.of(
            "value {value} was sent {sends_count} times; values must be unique a key",
            operations=tuple(log.sends.operation[sends[:_SENDS_MAX]].tolist()),
            values={"value": value},
            sends_count=len(sends),
        )

    return found(
        "unique-values",
        log.key,
        cases=len(log.sends),
        never=np.arange(len(repeated)),
        proof=proof,
        order=repeated,
    )


def sent_values(log: KeyLog) -> Found:
    """Find values that were read but never sent; one anomaly per value."""
    stray = rows_at(log, ~log.entry_sent, among=log.sends.value, absent=True)
    _, first = np.unique(log.reads.value[stray], return_index=True)
    row = np.sort(stray[first])

    def proof(number: int) -> Proof:
        read = row[number]
        value, offset = int(log.reads.value[read]), int(log.reads.offset[read])
        operation = int(log.reads.operation[read])
        return Proof.of(
            "operation {operation} returned value {value} at offset {offset}, and no "
            "recorded operation sent it to {key}",
            operations={"operation": operation},
            offsets={"offset": offset},
            values={"value": value},
            sources={"value": "operation", "offset": "operation"},
            key=log.key,
        )

    return found(
        "sent-values",
        log.key,
        cases=len(log.reads),
        never=np.arange(len(row)),
        proof=proof,
        order=log.reads.row[row],
    )


_UNIQUE_VALUES: Final = CatalogueEntry.of(
    """A4 unique-values: Values are unique a key.

    No two sends to a key carry one value. Judged key by key.

    A key that breaks it is not judged by the checks that tell records apart by value.

    Meaning: Records are told apart by their values.
    Case: a send
    Source: history/schema.py
    """,
    kind=Kind.ASSUMPTION,
    needs=("operations", "records"),
)

_SENT_VALUES: Final = CatalogueEntry.of(
    """A5 sent-values: Every value that was read was sent.

    Each value that a poll of whatever outcome returned is the value of some recorded send to that
    key.

    Meaning: A record of a stranger, a corrupted record or a hole in the recording: the history
    cannot tell which.
    Case: a record that was read
    Source: history/schema.py; the recorder writes an invocation down before it is sent
    """,
    kind=Kind.ASSUMPTION,
    needs=("operations", "records"),
)

CHECKS: Final = (
    KeyCheck(
        entry=_UNIQUE_VALUES,
        kernel=unique_values,
    ),
    KeyCheck(
        entry=_SENT_VALUES,
        kernel=sent_values,
    ),
)

KEY_ASSUMPTIONS: Final[Mapping[str, KeyCheck]] = {check.entry.name: check for check in CHECKS}
"""Run first, on the same rows. The entry of a check says on which it rests (`rests_on`)."""
