"""V8 nonrepeatable-isr-read: Reads of the ISR through different brokers go back.

As isr-read-went-back, of two brokers, the second one unfenced from the call to the return. Judged
of reads that are called once a broker was told a lowest acknowledged offset at or above the record
of the level of metadata.version, while that level reigns. Where nothing is told, nothing is judged.

Where brokers are told the lowest metadata offset that every unfenced broker has acknowledged, they
promise repeatable reads: no broker shows what another unfenced one may not show yet.

The promise holds from when a broker was told a lowest acknowledged offset at or above the record
that set the level, until the level is lowered: by then every unfenced broker goes by it. Both reads
have to be called in that time. A cluster that never tells such an offset (so far every release of
Kafka) promises nothing, and nothing is judged.

Meaning: A client that changes its broker is put back in time, where that is promised not to happen.
Case: a read of a partition, after one through another broker that showed more than the first
version, where brokers are told the lowest acknowledged offset
Source: the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, "Read-after-write
visibility"
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, doubtful
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.visibility.broker_intervals import BrokerIntervals, broker_intervals
from fencepost.checkers.visibility.isr_reads import IsrReads, compared, found_backward, isr_reads
from fencepost.checkers.visibility.metadata_version_intervals import (
    LEVEL,
    levels_with_visibility,
    raised_levels,
    told_offsets,
)

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.VIEW,
    needs=("metadata_log", "describes", "wire"),
)
NAME: Final = ENTRY.name

_Span = tuple[int, int]
"""The time from when until when the promise holds."""


def nonrepeatable_isr_reads(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition. Reads `metadata_log`, `describes` and `wire`."""
    told = told_offsets(streamed(tables, "wire"))
    if not told:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    spans = list(_spans(seen, told))
    brokers = broker_intervals(seen)
    for reads in isr_reads(tables["describes"], seen) if spans else ():
        yield reads.history.key, _judged(reads, brokers, spans)


def _spans(seen: MetadataView, told: Sequence[tuple[int, int]]) -> Iterator[_Span]:
    levels = (one for one in seen.log.records if one.type == LEVEL)
    stamps = {record.metadata_offset: record.timestamp_ms for record in levels}
    for raised in levels_with_visibility(raised_levels(seen.log.records), told):
        until_ns = OPEN_NS
        if raised.end_offset in stamps:
            until_ns = seen.facts.earliest_ns(stamps[raised.end_offset])
        # Since when brokers are told that all have acknowledged the record that set the level.
        yield min(when for when, lowest in told if lowest >= raised.begin_offset), until_ns


def _judged(reads: IsrReads, brokers: BrokerIntervals, spans: Sequence[_Span]) -> Found:
    answers = [
        compared(
            reads,
            claims=held[reads.node[held] != node],
            asking=_asking(reads, brokers, held, node),
        )
        for held in (_held(reads, span) for span in spans)
        for node in np.unique(reads.node)
    ]
    return found_backward(NAME, reads, answers, showed="{old_node}, unfenced, showed ")


def _held(reads: IsrReads, span: _Span) -> NDArray[np.int64]:
    """Return the reads in the time of the promise."""
    from_ns, until_ns = span
    return np.flatnonzero((reads.call_ns > from_ns) & (reads.return_ns < until_ns))


def _asking(
    reads: IsrReads, brokers: BrokerIntervals, held: NDArray[np.int64], node: str
) -> NDArray[np.int64]:
    """Return the reads among them through this broker while it was unfenced."""
    here: NDArray[np.int64] = held[reads.node[held] == node]
    unfenced = brokers.unfenced(node, reads.call_ns[here], reads.return_ns[here])
    kept: NDArray[np.int64] = here[unfenced]
    return kept


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=nonrepeatable_isr_reads,
        split=Split.PARTITIONS,
    ),
)
