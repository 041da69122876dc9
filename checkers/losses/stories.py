"""The stories of one key's lost records, told from the tables of its cluster.

Values that share fate, election and neighbourhood are one loss: a thousand records that one
truncation took are one story, with a range of offsets. `losses.rows` says how the election is
found; here it is told how the broker that won it had come into the ISR, and who had the records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.control_plane.unfetched_epoch import ProposedJoin
from fencepost.checkers.disk_faults import DISK_FAULTS
from fencepost.checkers.facts import Facts, Tables
from fencepost.checkers.losses.forensics import (
    Acknowledgement,
    EarlyRead,
    FaultAlive,
    FinalReplica,
    Join,
    Loss,
    LossyElection,
    MetadataNote,
    Truncation,
    sentence_of,
)
from fencepost.checkers.losses.rows import UNKNOWN, Case, LostRows, LostValues, case_of, lost_rows
from fencepost.checkers.metadata.broker_states import BrokerHistory
from fencepost.checkers.metadata.isr_changes import proposals
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.ranges import stretches
from fencepost.checkers.replicas.first_reads import first_reads
from fencepost.checkers.replicas.min_isr import enough, min_isr
from fencepost.checkers.replicas.read_below_min_isr import under_versions
from fencepost.checkers.replicas.replica_logs import ReplicaLog

_VALUES_MAX: Final = 10
_GAP_MAX: Final = 1000
"""The largest gap of offsets inside one loss: markers, or records of others that are not lost."""
_NOTES_MAX: Final = 100


def losses(lost: LostValues, tables: Tables, facts: Facts) -> tuple[Loss, ...]:
    """Return the losses of one key, by offset.

    Reads `metadata_log`, `wire`, `replicas`, `faults`, `node_settings`, and of the key's bucket
    `records` and `replica_records`.
    """
    case = case_of(lost, tables, MetadataView(run=facts, metadata_log=tables["metadata_log"]))
    found = [
        _loss(case, story.take(places))
        for story in lost_rows(case).stories()
        for places in stretches(story.offset, gap_max=_GAP_MAX)
    ]
    found.sort(key=lambda loss: -1 if loss.first_offset is None else loss.first_offset)
    return tuple(found)


def _loss(case: Case, rows: LostRows) -> Loss:
    values = rows.value.tolist()
    known = rows.offset[rows.offset != UNKNOWN]
    loss = Loss(
        key=case.lost.key,
        fate=rows.shared_fate,
        checks=tuple(sorted({check for one in values for check in case.lost.checks[one]})),
        count=len(values),
        first_offset=int(known[0]) if len(known) else None,
        last_offset=int(known[-1]) if len(known) else None,
        values=tuple(values[:_VALUES_MAX]),
        operations=tuple(rows.operation[:_VALUES_MAX].tolist()),
        replicas=tuple(_replica(log, rows.value) for log in case.logs),
    )
    if case.history is not None:
        loss = _told(loss, rows, case, case.history)
    return replace(loss, sentence=sentence_of(loss))


def _told(loss: Loss, rows: LostRows, case: Case, history: PartitionHistory) -> Loss:
    """Return the loss with all that the metadata log adds."""
    acknowledged = tuple(_acknowledgements(rows, case, history))
    election = _election(int(rows.election[0]), case, history)
    told = replace(
        loss,
        acknowledgements=acknowledged,
        early_reads=tuple(_early_reads(rows, case, history)),
        truncations=tuple(_truncations(loss, acknowledged, election, case)),
    )
    if election is None:
        return told
    since = acknowledged[-1].metadata_offset if acknowledged else 0
    return replace(
        told,
        election=election,
        join=_join(election, acknowledged, case, history),
        metadata=_notes_between(history, case.seen, since, election.metadata_offset),
        faults=tuple(_faults(acknowledged, election, case)),
    )


def _replica(log: ReplicaLog, value: NDArray[np.int64]) -> FinalReplica:
    return FinalReplica(
        node=log.node,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        leader_epochs=log.leader_epochs,
        held_count=int(np.count_nonzero(np.isin(value, log.value))),
        damage=log.damage,
    )


def _acknowledgements(
    rows: LostRows, case: Case, history: PartitionHistory
) -> Iterator[Acknowledgement]:
    for place in np.unique(rows.version[rows.version >= 0]).tolist():
        version = history.versions[place]
        mine = rows.take(np.flatnonzero(rows.version == place))
        broker = case.seen.broker_before(version.leader, version.metadata_offset + 1)
        yield Acknowledgement(
            leader=version.leader,
            leader_epoch=version.leader_epoch,
            broker_epoch=None if broker is None else broker.broker_epoch,
            isr=version.isr,
            partition_epoch=version.partition_epoch,
            metadata_offset=version.metadata_offset,
            first_offset=int(mine.offset[0]),
            last_offset=int(mine.offset[-1]),
            count=len(mine.value),
            first_ns=int(np.min(mine.return_ns)),
            last_ns=int(np.max(mine.return_ns)),
        )


def _early_reads(rows: LostRows, case: Case, history: PartitionHistory) -> Iterator[EarlyRead]:
    """Yield the lost values that consumers had read while too few replicas held them."""
    reads = first_reads(case.lost.key, case.tables["records"])
    mine = reads.take(np.isin(reads.value, rows.value))
    wanted = min_isr(history.topic, case.tables["node_settings"], case.seen)
    for version, early in under_versions(history, mine, mine.call_ns, case.seen.facts):
        if version.leader != NO_LEADER and len(version.isr) < enough(version, wanted):
            yield EarlyRead(
                leader=version.leader,
                isr=version.isr,
                metadata_offset=version.metadata_offset,
                min_isr=wanted,
                count=len(early),
                first_ns=int(np.min(early.return_ns)),
                last_ns=int(np.max(early.return_ns)),
            )


def _election(leader_epoch: int, case: Case, history: PartitionHistory) -> LossyElection | None:
    version = next((one for one in history.versions if one.leader_epoch == leader_epoch), None)
    if version is None or case.leader_log is None:
        return None
    return LossyElection(
        leader=version.leader,
        leader_epoch=leader_epoch,
        metadata_offset=version.metadata_offset,
        time_ns=case.seen.facts.time_ns(version.timestamp_ms),
        log_end_offset=dict(case.leader_log.leader_epochs)[leader_epoch],
        unclean=version.recovering,
    )


def _join(
    election: LossyElection,
    acknowledged: Sequence[Acknowledgement],
    case: Case,
    history: PartitionHistory,
) -> Join | None:
    """Return the last time between acknowledgement and election that the elected broker came in."""
    since = acknowledged[0].metadata_offset if acknowledged else 0
    joined: PartitionVersion | None = None
    for before, version in history.steps():
        if version.metadata_offset > election.metadata_offset:
            break
        came = election.leader in set(version.isr) - set(before.isr)
        if came and version.metadata_offset > since:
            joined = version
    return None if joined is None else _described(joined, election.leader, case)


def _described(version: PartitionVersion, broker_id: int, case: Case) -> Join:
    seen = case.seen
    made = proposals(version, case.requests)
    request = next(iter((*made.sure, *made.possible)), None)
    mine = (one for one in case.stale if one.version == version and one.broker_id == broker_id)
    stale = next(mine, None)
    unfetched = _unfetched(case, request, broker_id)
    judged_epoch = None if unfetched is None else unfetched.fetched_epoch
    registration = seen.broker_before(broker_id, version.metadata_offset)
    registered_ns = None if registration is None else seen.facts.time_ns(registration.timestamp_ms)
    return Join(
        broker_id=broker_id,
        metadata_offset=version.metadata_offset,
        partition_epoch=version.partition_epoch,
        time_ns=seen.facts.time_ns(version.timestamp_ms),
        frame=None if request is None else request.frame,
        sent_ns=None if request is None else request.asked_ns,
        forwarded_ns=None if request is None else request.reached_ns,
        stale=stale is not None or unfetched is not None,
        judged_epoch=judged_epoch if stale is None else stale.judged_epoch,
        registration_offset=None if registration is None else registration.registration_offset,
        registered_epoch=None if registration is None else registration.broker_epoch,
        registered_ns=registered_ns if stale is None else stale.registered_ns,
    )


def _unfetched(case: Case, request: Rpc | None, broker_id: int) -> ProposedJoin | None:
    """Return the join that this request proposed under an epoch of no Fetch, or a repeat of it."""
    if request is None:
        return None
    expected = request.of("partition_epoch")
    return next(
        (
            one
            for one in case.unfetched
            if one.broker_id == broker_id and one.request.of("partition_epoch") == expected
        ),
        None,
    )


def _truncations(
    loss: Loss,
    acknowledged: Sequence[Acknowledgement],
    election: LossyElection | None,
    case: Case,
) -> Iterator[Truncation]:
    """Yield the brokers that acknowledged records as ISR members and no longer have them."""
    nodes = case.seen.facts.nodes()
    for replica in loss.replicas:
        mine = [one for one in acknowledged if replica.node in map(nodes.get, one.isr)]
        if not mine or replica.held_count == loss.count:
            continue
        fault = _disk_fault(replica.node, case, since_ns=mine[0].first_ns)
        if fault is not None:
            yield Truncation(node=replica.node, to_offset=None, fault=fault)
        elif election is not None:
            yield Truncation(node=replica.node, to_offset=election.log_end_offset, fault=None)


def _disk_fault(node: str, case: Case, *, since_ns: int) -> str | None:
    """Return the first fault after that moment that changed the node's disk."""
    for row in case.tables["faults"].to_pylist():
        if row["fault"] in DISK_FAULTS and node in row["targets"] and row["begin_ns"] >= since_ns:
            return str(row["fault"])
    return None


def _faults(
    acknowledged: Sequence[Acknowledgement], election: LossyElection, case: Case
) -> Iterator[FaultAlive]:
    first_ns = min((one.first_ns for one in acknowledged), default=election.time_ns)
    for row in case.tables["faults"].to_pylist():
        over = row["end_ns"] is not None and row["end_ns"] < first_ns
        if row["begin_ns"] <= election.time_ns and not over:
            yield FaultAlive(
                index=row["index"],
                fault=row["fault"],
                targets=tuple(row["targets"]),
                begin_ns=row["begin_ns"],
                end_ns=row["end_ns"],
            )


def _notes_between(
    history: PartitionHistory, seen: MetadataView, first_offset: int, last_offset: int
) -> tuple[MetadataNote, ...]:
    """Return the records between these offsets about the partition and its brokers."""
    replicas = {one for version in history.versions for one in version.replicas}
    brokers = [seen.brokers[one] for one in sorted(replicas) if one in seen.brokers]
    notes = [
        *_of_partition(history, seen),
        *(note for one in brokers for note in _of_broker(one, seen)),
    ]
    notes.sort(key=lambda note: note.metadata_offset)
    kept = [one for one in notes if first_offset <= one.metadata_offset <= last_offset]
    return tuple(kept[-_NOTES_MAX:])


def _of_partition(history: PartitionHistory, seen: MetadataView) -> Iterator[MetadataNote]:
    for version in history.versions:
        elr = f" ELR {list(version.elr)}" if version.elr else ""
        yield MetadataNote(
            metadata_offset=version.metadata_offset,
            time_ns=seen.facts.time_ns(version.timestamp_ms),
            text=f"{history.key} {version.cause}: leader {version.leader}, leader epoch "
            f"{version.leader_epoch}, ISR {version.isr_text}{elr}, partition epoch "
            f"{version.partition_epoch}{', unclean' if version.recovering else ''}",
        )


def _of_broker(broker: BrokerHistory, seen: MetadataView) -> Iterator[MetadataNote]:
    for version in broker.versions:
        state = "fenced" if version.fenced else "unfenced"
        if version.in_controlled_shutdown:
            state += ", in controlled shutdown"
        new = version.metadata_offset == version.registration_offset
        state = state if version.registered else "unregistered"
        what = f"registered with broker epoch {version.broker_epoch}, " if new else ""
        yield MetadataNote(
            metadata_offset=version.metadata_offset,
            time_ns=seen.facts.time_ns(version.timestamp_ms),
            text=f"broker {broker.broker_id} {what}{state}",
        )
