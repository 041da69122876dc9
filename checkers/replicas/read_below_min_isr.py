"""D21 read-below-min-isr and D22 committed-below-min-isr: records that fewer replicas held.

A consumer is given what lies below the high watermark. What it was given while the ISR was smaller
than `min.insync.replicas` may lie on fewer disks than the topic asks for, and may be gone when the
leader is.

No other broker can have shown it: a leader before this one waits for an ISR of its own, and the one
in force, which is in that, does not follow it any more (as of acknowledged-below-min-isr).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.in_force import UNSURE, in_force
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.view import MetadataView, by_key, first_calls, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.first_reads import FirstReads, first_reads
from fencepost.checkers.replicas.min_isr import (
    MORE_THAN_THE_LEADER,
    AppliedOffsets,
    enough,
    min_isr,
)
from fencepost.checkers.replicas.stretches import below_min_isr_proofs
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

READ_ENTRY: Final = CatalogueEntry.of(
    """D21 read-below-min-isr: A record was first read while the ISR was smaller than asked for.

    The first read of a record was called and returned under one version of its partition, with an
    ISR smaller than the topic's min.insync.replicas. The record may have been committed before,
    under a larger one.

    Kafka allows either, so it is a figure. A consumer may also have fetched the record ahead of the
    read.

    Meaning: A consumer acted on what fewer disks held than the topic asks for: what is lost then
    was not only written, but seen. Losses tell of it (`forensics.json`).
    Case: a record first read under an ISR that is known, where more than the leader is asked for
    Source: KIP-966; Apache Kafka's documentation, min.insync.replicas
    """,
    nearness=Nearness.REMAINS,
    strength=Strength.FIGURE,
    needs=("metadata_log", "node_settings"),
)
READ: Final = READ_ENTRY.name
COMMITTED_ENTRY: Final = CatalogueEntry.of(
    """D22 committed-below-min-isr: The high watermark rose while the ISR was smaller than asked
    for.

    One version of a partition was in force from the call of a record's send to the return of its
    first read, with an ISR smaller than the topic's min.insync.replicas, of which the leader had
    said a second before the call that it had applied it. Judged while eligible leader replicas are
    on, of partitions without an unclean election.

    With eligible leader replicas (KIP-966) the high watermark does not rise while the ISR is too
    small (`min_isr`): else a replica that left the ISR last, and may be elected for it, would lack
    what had been committed since. A leader that was deposed by an unclean election may go by its
    own ISR for a while.

    It does not see a high watermark that rises over records that were there before the ISR shrank.
    Kafka keeps to the rule from release 3.7 on, with eligible leader replicas or without
    (KAFKA-15583); only with them something depends on it.

    Meaning: A replica that left the ISR last, and may be elected for it, lacks what was committed:
    records that consumers saw are lost in a clean election.
    Case: a record that was sent and first read under one ISR, which its leader surely knew, with
    eligible leader replicas on and more than the leader asked for
    Source: KIP-966, "Additional high watermark advancement requirement"; Apache Kafka's
    documentation, Eligible Leader Replicas
    """,
    nearness=Nearness.LOG,
    needs=("metadata_log", "wire", "node_settings"),
)
COMMITTED: Final = COMMITTED_ENTRY.name

_ELR: Final = "eligible.leader.replicas.version"

_Group = tuple[PartitionVersion, FirstReads]


def reads_below_min_isr(tables: Tables, seen: MetadataView) -> Judged:
    """Judge D21 on each key of a bucket. Reads `records`, `metadata_log` and `node_settings`."""

    def groups(
        history: PartitionHistory, reads: FirstReads, seen: MetadataView
    ) -> Iterator[_Group]:
        return under_versions(history, reads, reads.call_ns, seen.facts)

    yield from _judged(READ, tables, seen, groups)


def commits_below_min_isr(tables: Tables, seen: MetadataView) -> Judged:
    """Judge D22 on each key of a bucket.

    Reads `records`, `metadata_log`, `metadata_offsets`, `node_settings` and `faults`.
    """
    applied = AppliedOffsets(tables, seen.facts)

    def groups(
        history: PartitionHistory, reads: FirstReads, seen: MetadataView
    ) -> Iterator[_Group]:
        if history.elected_uncleanly:
            return
        sent = reads.take(reads.sent_ns != OPEN_NS)
        levels = _levels(seen)
        for version, mine in under_versions(history, sent, sent.sent_ns, seen.facts):
            known_ns = applied.known_ns(version)
            if known_ns is not None and _strict(version, history, levels):
                yield version, mine.take(mine.sent_ns >= known_ns)

    yield from _judged(COMMITTED, tables, seen, groups)


def under_versions(
    history: PartitionHistory, reads: FirstReads, from_ns: NDArray[np.int64], facts: Facts
) -> Iterator[_Group]:
    """Yield the reads by the version that was in force from these times until they returned."""
    versions = in_force((one.timestamp_ms for one in history.versions), facts)
    place = versions.all_through(from_ns, reads.return_ns)
    for number in np.unique(place[place != UNSURE]).tolist():
        yield history.versions[number], reads.take(place == number)


def _judged(
    check: str,
    tables: Tables,
    seen: MetadataView,
    groups: Callable[[PartitionHistory, FirstReads, MetadataView], Iterator[_Group]],
) -> Judged:
    records = tables["records"]  # read once for all keys

    def judged(history: PartitionHistory) -> Found:
        reads = _known(history.key, records, seen)
        wanted = min_isr(history.topic, tables["node_settings"], seen)
        return _found(check, history.key, list(groups(history, reads, seen)), wanted)

    yield from by_key(check, first_calls(records), seen, judged)


def _known(key: str, records: pa.Table, seen: MetadataView) -> FirstReads:
    """Return the first reads that returned while the metadata log goes on."""
    reads = first_reads(key, records)
    return reads.take(reads.return_ns <= seen.known_until_ns)


def _found(check: str, key: str, groups: Sequence[_Group], wanted: int) -> Found:
    proofs: list[Proof] = []
    cases = 0
    for version, reads in groups:
        asked = enough(version, wanted)
        if version.leader == NO_LEADER or asked < MORE_THAN_THE_LEADER:
            continue  # the leader itself is enough where one is
        cases += len(reads)
        if len(version.isr) < asked:
            proofs += _stories(check, reads, version, wanted)
    allowed_count = len(proofs) if check == READ else 0
    return spelled(check, key, proofs, cases=cases, allowed_count=allowed_count)


def _levels(seen: MetadataView) -> Sequence[tuple[int, int]]:
    """Return the levels of eligible leader replicas: (metadata offset, level), in order."""
    return [
        (record.metadata_offset, int(record.value or 0))
        for record in seen.log.records
        if record.type == "FeatureLevelRecord" and record.name == _ELR
    ]


def _strict(
    version: PartitionVersion, history: PartitionHistory, levels: Sequence[tuple[int, int]]
) -> bool:
    """Return whether eligible leader replicas were on from this version to the next one."""
    offset = version.metadata_offset
    next_one = bisect_right(history.versions, offset, key=lambda one: one.metadata_offset)
    later = history.versions[next_one : next_one + 1]
    end_offset = later[0].metadata_offset if later else OPEN_NS
    before = [level for offset, level in levels if offset <= version.metadata_offset]
    during = [level for offset, level in levels if version.metadata_offset < offset < end_offset]
    return all([*(before[-1:] or [0]), *during])


def _stories(
    check: str, reads: FirstReads, version: PartitionVersion, wanted: int
) -> Iterator[Proof]:
    if check == COMMITTED:
        happened, from_ns = "sent and first read", reads.sent_ns
    else:
        happened, from_ns = "first read", reads.call_ns
    return below_min_isr_proofs(happened, reads, from_ns=from_ns, version=version, wanted=wanted)


CHECKS: Final = (
    TableCheck(
        entry=READ_ENTRY,
        kernel=reads_below_min_isr,
        tables=("records", "metadata_log", "node_settings"),
        split=Split.OFFSETS,
    ),
    TableCheck(
        entry=COMMITTED_ENTRY,
        kernel=commits_below_min_isr,
        tables=("records", "metadata_log", "metadata_offsets", "node_settings", "faults"),
        split=Split.OFFSETS,
        # A record that was read may be of a send that was never acknowledged.
        unplaced=True,
    ),
)
