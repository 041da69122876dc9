"""D17 truncated-below-high-watermark: A replica cut off records that were committed.

A record was acknowledged under acks=all while a broker was in the ISR all through the send. The
broker's log, read whole, does not hold it at its offset, though no fault changed that disk since,
and it has been a replica ever since. Or along the way: the broker fetched from that offset or
below, or led and took a record there, after the acknowledgement.

A record that was acknowledged under acks=all was also committed: below the high watermark of the
leader that acknowledged it. Who was in the ISR all through its send is told by
`replicas.commitments`.

During the run the tape and the sends tell where its log ended (`replicas.along_the_way`): so what
was cut is found also where the disk was wiped later, or the record fetched again.

Under an election that was recorded as unclean this is legal. It is not judged without acks=all.
Where two incarnations of a topic had one name, it is not known which of them a send went to; where
the metadata log has no such topic, nothing is known. Either is unknown.

A case is a record that a replica held when it was acknowledged, and that it should hold in the end;
or a place where its log was seen to end, after it had held any.

Meaning: A broker that had the data threw it away: the copies are gone with it.
Case: an acknowledged record that a replica held, or an end of such a replica's log that was seen
along the way
Source: KIP-101, KIP-279; KAFKA-18991, KAFKA-14139
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from fencepost.checkers.anomaly import Found
from fencepost.checkers.disk_faults import last_disk_fault_ns
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.membership import has_repeats
from fencepost.checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.view import MetadataView, by_key, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.along_the_way import course_of, cut_records
from fencepost.checkers.replicas.commitments import Commitment, commitments
from fencepost.checkers.replicas.log_ends import FETCH
from fencepost.checkers.replicas.replica_logs import UNCLEAN, ReplicaLog, replica_logs
from fencepost.checkers.replicas.sends import AcknowledgedSends, acknowledged, sends_by_key
from fencepost.checkers.replicas.stretches import stretch_proofs
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import SlicedKernel, TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    strength=Strength.ALLOWED_IF,
    allowed_if=UNCLEAN,
    needs=("metadata_log", "replicas", "replica_records"),
)
NAME: Final = ENTRY.name

_EPOCHS_AROUND: Final = 3
"""The leader epochs of a log that a sentence names on each side of an offset."""


def truncated_replicas(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each key of a bucket.

    Reads `replicas`, `replica_records`, `records`, `metadata_log`, `wire` and `faults`.
    """
    return _judged(tables, seen, copies=True, way=True)


def cut_copies(tables: Tables, seen: MetadataView) -> Judged:
    """Judge what the disks hold in the end of the records at hand."""
    return _judged(tables, seen, copies=True)


def cut_along_the_way(tables: Tables, seen: MetadataView) -> Judged:
    """Judge where logs ended along the way. All acknowledged sends of a key are at hand."""
    return _judged(tables, seen, way=True)


def _judged(
    tables: Tables, seen: MetadataView, *, copies: bool = False, way: bool = False
) -> Judged:
    if seen.facts.acks != "all":
        return
    # Read once for all keys, and not kept by the tables.
    held = tables["replica_records"] if copies else None

    def judged(history: PartitionHistory) -> Found:
        doubt = seen.doubt_at_the_end() if copies else ""
        sent = sends_by_key(tables)[history.key].whole
        if sent is not None and has_repeats(sent.value):
            twice = f"a value was sent to {history.key} twice, and tells no record from another"
            return spelled(NAME, history.key, [], cases=0, doubt=twice)
        found = [] if held is None or doubt else list(_copies(history, tables, held, seen))
        answers: list[Proof | None] = [proof for one in found for proof in _stories(one)]
        cases = sum(len(one.sends) for one in found)
        if way:
            cut = list(cut_records(course_of(history, tables, seen), tables["faults"]))
            answers, cases = answers + cut, cases + len(cut)
        proofs = [proof for proof in answers if proof is not None]
        return spelled(
            NAME,
            history.key,
            proofs,
            cases=cases,
            doubt=doubt,
            allowed_count=len(proofs) if history.elected_uncleanly else 0,
        )

    first_called_ns = {key: one.first_called_ns for key, one in sends_by_key(tables).items()}
    yield from by_key(NAME, first_called_ns, seen, judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copies:
    """Records that a replica held when they were acknowledged, and should hold in the end."""

    log: ReplicaLog
    broker_id: int
    version: PartitionVersion
    sends: AcknowledgedSends


def _copies(
    history: PartitionHistory, tables: Tables, held: pa.Table, seen: MetadataView
) -> Iterator[_Copies]:
    stretches = sends_by_key(tables)[history.key].stretches(tables)
    groups = [
        group for sends in stretches for group in commitments(sends, history.versions, seen.facts)
    ]
    # The place of the last version of which a broker is no replica.
    left = {
        broker_id: place
        for place, version in enumerate(history.versions)
        for broker_id in seen.facts.node_ids.values()
        if broker_id not in version.replicas
    }
    for log in replica_logs(history.key, tables["replicas"], held):
        if log.damage is None and log.topic_id in (None, history.topic_id):
            safe_ns = last_disk_fault_ns(tables["faults"], log.node)
            broker_id = seen.facts.node_ids.get(log.node, -1)
            stayed = [one for one in groups if left.get(broker_id, -1) < one.place]
            yield from _of_replica(log, broker_id, safe_ns, stayed)


def _of_replica(
    log: ReplicaLog,
    broker_id: int,
    safe_ns: int,
    groups: Sequence[Commitment],
) -> Iterator[_Copies]:
    for group in groups:
        if broker_id in group.holders:
            sends = group.sends
            kept = (sends.call_ns > safe_ns) & (sends.offset >= log.log_start_offset)
            yield _Copies(
                log=log,
                broker_id=broker_id,
                version=group.versions[0],
                sends=sends.take(kept),
            )


def _stories(copies: _Copies) -> Iterator[Proof]:
    """Yield one proof per stretch of offsets it lost."""
    log, version = copies.log, copies.version
    gone = copies.sends.take(log.value_at(copies.sends.offset) != copies.sends.value)
    if not len(gone):
        return
    role = "led" if version.leader == copies.broker_id else "followed"
    yield from stretch_proofs(
        "{node} {role} in leader epoch {leader_epoch} with ISR {isr} (metadata "
        "offset {metadata_offset}) when {count} records at {range} were "
        "acknowledged, from {min} to {max}; its log, which ends at {log_end_offset} "
        "(leader epochs: {log_epochs}), does not hold them, and no fault changed its disk",
        gone,
        from_ns=gone.return_ns,
        node=log.node,
        role=role,
        leader_epoch=version.leader_epoch,
        isr=version.isr_text,
        metadata_offset=version.metadata_offset,
        decided=("leader_epoch", "isr"),
        log_end_offset=log.log_end_offset,
        log_epochs=_epochs(log, int(gone.offset[0])),
    )


def _epochs(log: ReplicaLog, offset: int) -> Proof:
    """Return the clause of the leader epochs of a log around an offset, each with its start."""
    if not log.leader_epochs:
        return Proof.of("none")
    place = bisect_right([start for _, start in log.leader_epochs], offset)
    first = max(0, place - _EPOCHS_AROUND)
    each = (
        Proof.of("{log_epoch} from {epoch_start}", log_epoch=epoch, epoch_start=start)
        for epoch, start in log.leader_epochs[first : place + _EPOCHS_AROUND]
    )
    return Proof.joined(", ", each)


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=truncated_replicas,
        tables=("replicas", "replica_records", "records", "metadata_log", "wire", "faults"),
        split=Split.RECORDS,
        records=acknowledged,
        parts=(
            SlicedKernel(kernel=cut_copies, split=Split.OFFSETS, records=acknowledged),
            SlicedKernel(
                kernel=cut_along_the_way,
                split=Split.RECORDS,
                apis=(FETCH,),
                records=acknowledged,
            ),
        ),
    ),
)
