"""V7 stale-isr-read: A broker shows an ISR that was replaced long ago, though nothing is broken.

A read of a partition was called when nothing had been broken, and its broker had been unfenced, for
the time that the scenario gives brokers to catch up; and every version of the partition that it may
have shown had been replaced for longer than the greatest age. The workload of metadata promises
both (`settle_ms`, `settled_age_max_ms`); where it does not, both are the scenario's
`recovery_limit`. Which versions a read may have shown is said at isr-read-went-back.

Kafka promises that brokers catch up in the end; the scenario says when that is. A version is taken
for there from the latest moment of its timestamp on, and from that of a later version on
(`isr_reads`). When nothing was broken is told by `quiet`.

It does not see an old ISR that is equal to one of the newest, nor one of a broker that is fenced.

Meaning: A broker has stopped to follow the metadata log, and serves on.
Case: a read of a partition that had another version before, while nothing is broken
Source: KIP-500; KIP-1243 for how long brokers may take
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.partition_states import PartitionVersion
from fencepost.checkers.metadata.view import MetadataView, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.quiet import Quiet, long_waits, quiet
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.spans import Span
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.visibility.broker_intervals import BrokerIntervals, broker_intervals
from fencepost.checkers.visibility.isr_reads import IsrReads, isr_reads

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.VIEW,
    rests_on_zookeeper=("whole-tape",),
    needs=("metadata_log", "describes"),
)
NAME: Final = ENTRY.name


def stale_isr_reads(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition. Reads `metadata_log`, `describes`, `faults` and `wire`."""
    if not seen.facts.metadata_settle_ns:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    brokers, calm = broker_intervals(seen), quiet(tables["faults"], _waits(tables, seen))
    for reads in isr_reads(tables["describes"], seen):
        yield reads.history.key, _judged(reads, brokers, calm, seen.facts)


def _waits(tables: Tables, seen: MetadataView) -> Sequence[Span]:
    told = seen.facts.on_zookeeper or seen.facts.migrating
    return long_waits(streamed(tables, "wire")) if told else ()


def _judged(reads: IsrReads, brokers: BrokerIntervals, calm: Quiet, facts: Facts) -> Found:
    there_ns = _there_ns(reads.history.versions, facts)
    replaced = np.searchsorted(there_ns, reads.call_ns - facts.metadata_age_max_ns, side="left") - 1
    cases = _settled(reads, brokers, calm, facts) & (replaced > 0)
    stale = np.flatnonzero(cases & (reads.last < replaced))

    def proof(number: int) -> Proof:
        return _proof(reads, int(stale[number]), there_ns, calm)

    return found(
        NAME,
        reads.history.key,
        cases=int(np.count_nonzero(cases)),
        never=np.arange(len(stale)),
        proof=proof,
    )


def _there_ns(versions: list[PartitionVersion], facts: Facts) -> NDArray[np.int64]:
    """Return from when on each version or a later one was surely there."""
    latest = np.array([facts.latest_ns(one.timestamp_ms) for one in versions], dtype=np.int64)
    there_ns: NDArray[np.int64] = np.minimum.accumulate(latest[::-1])[::-1]
    return there_ns


def _settled(
    reads: IsrReads, brokers: BrokerIntervals, calm: Quiet, facts: Facts
) -> NDArray[np.bool_]:
    """Return a mask of reads after a long enough time without faults, their broker in office."""
    from_ns = reads.call_ns - facts.metadata_settle_ns
    settled: NDArray[np.bool_] = calm.since_ns(reads.return_ns) <= from_ns
    for node in np.unique(reads.node):
        here = np.flatnonzero(reads.node == node)
        settled[here] &= brokers.unfenced(node, from_ns[here], reads.return_ns[here])
    return settled


def _proof(reads: IsrReads, row: int, there_ns: NDArray[np.int64], calm: Quiet) -> Proof:
    shown = reads.newest(row)
    place = int(reads.last[row]) + 1
    newer = reads.history.versions[place]
    since_ns = int(calm.since_ns(reads.return_ns[row : row + 1])[0])
    return Proof.of(
        "{node}, unfenced, showed {shown} to a read that was called at {call}; "
        "metadata offset {newer_metadata_offset} (leader {new_leader}, leader epoch "
        "{new_leader_epoch}, ISR {new_isr}) had replaced that by {there}, and nothing "
        "was broken since {since}",
        metadata_offsets={
            "metadata_offset": shown.metadata_offset,
            "newer_metadata_offset": newer.metadata_offset,
        },
        times={"call": int(reads.call_ns[row]), "there": int(there_ns[place]), "since": since_ns},
        node=reads.node[row],
        sources=dict.fromkeys(
            ("new_leader", "new_leader_epoch", "new_isr"), "newer_metadata_offset"
        )
        | dict.fromkeys(("leader", "leader_epoch", "isr"), "metadata_offset"),
        shown=reads.clause(row),
        new_leader=newer.leader,
        new_leader_epoch=newer.leader_epoch,
        new_isr=newer.isr_text,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stale_isr_reads,
        split=Split.PARTITIONS,
        tables=("metadata_log", "describes", "faults", "wire"),
    ),
)
