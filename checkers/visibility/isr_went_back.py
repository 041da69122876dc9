"""V6 isr-read-went-back: A broker shows an older ISR than it had shown.

Two reads of a partition were answered by one incarnation of a broker, the first one had returned
before the second one was called, and every version of the partition that the second one may have
shown is older than every one that the first one may have shown. A read may have shown the versions,
by the metadata log, that have the leader, the leader epoch, the ISR and the replicas that it
showed; of several, the one in force at the metadata offset that the answer tells.

A broker applies the metadata log record by record, so that what one incarnation of it shows of a
partition only goes forward.

An incarnation is known by its registration. A broker answers no client before it has registered and
has caught up with that, so reads between two registrations are of one incarnation. Reads near a
registration, by what the clocks may differ, are left out.

It does not see a broker that goes back over a restart (stale-isr-read does, unless it catches up in
time), nor one whose older and newer ISR are equal.

Meaning: A broker undid metadata that it had applied.
Case: a read of a partition, after one of the same incarnation of its broker that showed more than
the first version
Source: KIP-631, "The broker's metadata cache"; Kafka's `MetadataLoader`
"""

from typing import Final

import numpy as np

from fencepost.checkers.anomaly import Found
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.in_force import UNSURE
from fencepost.checkers.metadata.view import MetadataView, doubtful
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.visibility.broker_intervals import BrokerIntervals, broker_intervals
from fencepost.checkers.visibility.isr_reads import IsrReads, compared, found_backward, isr_reads

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.NODE,
    needs=("metadata_log", "describes"),
)
NAME: Final = ENTRY.name


def isr_reads_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition. Reads `metadata_log` and `describes`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    brokers = broker_intervals(seen)
    for reads in isr_reads(tables["describes"], seen):
        yield reads.history.key, _judged(reads, brokers)


def _judged(reads: IsrReads, brokers: BrokerIntervals) -> Found:
    answers = []
    for node in np.unique(reads.node):
        here = np.flatnonzero(reads.node == node)
        incarnation = brokers.incarnation(node, reads.call_ns[here], reads.return_ns[here])
        for number in np.unique(incarnation[incarnation != UNSURE]):
            mine = here[incarnation == number]
            answers.append(compared(reads, claims=mine, asking=mine))
    return found_backward(NAME, reads, answers, showed="and ")


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=isr_reads_that_went_back,
        split=Split.PARTITIONS,
    ),
)
