"""D20 acknowledged-below-min-isr: A record was acknowledged by fewer replicas than were asked for.

A record was acknowledged under acks=all, and one version of its partition was in force from the
call to the return, with an ISR smaller than the topic's min.insync.replicas, of which the leader
had said a second before the call that it had applied it.

With acks=all a leader takes no record, and acknowledges none, while the ISR is smaller than
`min.insync.replicas` of its topic. A leader that knows of an older, larger ISR may acknowledge what
all of that one has.

No other broker can have acknowledged it meanwhile. A leader before this one waits for every member
of an ISR of its own, and the leader in force, which is one of them, does not follow it any more.

The setting is the smallest that the topic can have had (`min_isr`). Sends without a clear end are
no acknowledgements. Without acks=all nothing is asked for.

Meaning: An acknowledged record lies on fewer disks than it was paid for.
Case: an acknowledged send under an ISR that its leader surely knew, where more than the leader was
asked for
Source: Apache Kafka's documentation, `min.insync.replicas`; KIP-497
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

from fencepost.checkers.anomaly import Found
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.view import MetadataView, by_key, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.commitments import commitments
from fencepost.checkers.replicas.min_isr import (
    MORE_THAN_THE_LEADER,
    AppliedOffsets,
    enough,
    min_isr,
)
from fencepost.checkers.replicas.sends import AcknowledgedSends, acknowledged, sends_by_key
from fencepost.checkers.replicas.stretches import below_min_isr_proofs
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("metadata_log", "wire", "node_settings"),
)
NAME: Final = ENTRY.name


def acknowledged_below_min_isr(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each key of a bucket.

    Reads `records`, `metadata_log`, `metadata_offsets`, `node_settings` and `faults`.
    """
    if seen.facts.acks in ("all", "-1"):
        applied = AppliedOffsets(tables, seen.facts)
        first_called_ns = {key: one.first_called_ns for key, one in sends_by_key(tables).items()}
        judged = partial(_found, tables=tables, seen=seen, applied=applied)
        yield from by_key(NAME, first_called_ns, seen, judged)


def _found(
    history: PartitionHistory, tables: Tables, seen: MetadataView, applied: AppliedOffsets
) -> Found:
    wanted = min_isr(history.topic, tables["node_settings"], seen)
    proofs: list[Proof] = []
    cases = 0
    for version, sends in _judged(history, tables, wanted, seen, applied):
        cases += len(sends)
        if len(version.isr) < enough(version, wanted):
            proofs += below_min_isr_proofs(
                "sent and acknowledged",
                sends,
                from_ns=sends.call_ns,
                version=version,
                wanted=wanted,
            )
    return spelled(NAME, history.key, proofs, cases=cases)


def _judged(
    history: PartitionHistory,
    tables: Tables,
    wanted: int,
    seen: MetadataView,
    applied: AppliedOffsets,
) -> Iterator[tuple[PartitionVersion, AcknowledgedSends]]:
    """Yield the sends of which the ISR is known, and whose leader knew it, by version."""
    # The leader itself is enough where one is.
    if all(enough(one, wanted) < MORE_THAN_THE_LEADER for one in history.versions):
        return
    log_end_ns = seen.known_until_ns
    stretches = sends_by_key(tables)[history.key].stretches(tables)
    for group in chain.from_iterable(
        commitments(sends, history.versions, seen.facts) for sends in stretches
    ):
        version = group.versions[0]
        led = version.leader != NO_LEADER and enough(version, wanted) >= MORE_THAN_THE_LEADER
        known_ns = applied.known_ns(version) if led and len(group.versions) == 1 else None
        if known_ns is not None:
            during = (group.sends.call_ns >= known_ns) & (group.sends.return_ns <= log_end_ns)
            yield version, group.sends.take(during)


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=acknowledged_below_min_isr,
        tables=("records", "metadata_log", "metadata_offsets", "node_settings", "faults"),
        split=Split.OFFSETS,
        records=acknowledged,
    ),
)
