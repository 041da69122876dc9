"""D25 deposed-leader-write: A deposed leader took a record, and knew that it was deposed.

A record was acknowledged, and replicas hold it in a leader epoch whose leader had said in a
heartbeat, a second before the record was sent, that it had applied the metadata record that ended
this epoch.

No client tells which broker acknowledged its record. The record does: its batch bears the leader
epoch of the broker that appended it (KIP-101), and in each leader epoch one broker leads, by the
metadata log. That broker may go on as the leader until it hears of the next epoch. So a paused,
deaf or cut-off leader, or one whose registration the controller fenced meanwhile, is not accused:
with releases of Kafka it has no lease, and nothing else ends its term. But once it has applied the
record that begins the next epoch it appends nothing in the old one.

All replicas that hold the value have to hold it in one leader epoch, in which the metadata log
names one leader, and go on to a later epoch. The record was appended after the call of its send.

Not seen: a record that no replica holds any more (lost-write sees it), a record that was never
acknowledged, and a broker that has not applied its deposition yet. Where brokers send no offsets in
heartbeats, as in the generation of ZooKeeper, it has no case.

Meaning: A broker that no longer leads, be it fenced or not, takes writes: the leader of the day has
others at the same offsets, and one of both is cut.
Case: an acknowledged send that replicas hold in a leader epoch that ended, whose leader said that
it had applied the end
Source: KIP-101 (leader epochs), KIP-631 (brokers follow the metadata log)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
from fencepost.checkers.replicas.min_isr import AppliedOffsets
from fencepost.checkers.replicas.replica_logs import ReplicaLog, replica_logs
from fencepost.checkers.replicas.sends import AcknowledgedSends, acknowledged, sends_by_key
from fencepost.checkers.replicas.stretches import stretch_proofs
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("metadata_log", "replicas", "replica_records", "wire"),
)
NAME: Final = ENTRY.name
_NOT_HELD: Final = -1
_AT_ODDS: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A leader epoch that ended, and when its leader surely knew."""

    leader: int
    ended_by: PartitionVersion
    known_ns: int


def deposed_leader_writes(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each key of a bucket.

    Reads `records`, `replicas`, `replica_records`, `metadata_log`, `metadata_offsets`, `faults`.
    """
    applied = AppliedOffsets(tables, seen.facts)
    held = tables["replica_records"]  # read once for all keys

    def judged(history: PartitionHistory) -> Found:
        terms = _terms(history.versions, applied)
        proofs: list[Proof] = []
        cases = 0
        logs = replica_logs(history.key, tables["replicas"], held) if terms else []
        own = [log for log in logs if log.topic_id in (None, history.topic_id)]
        for sends in sends_by_key(tables)[history.key].stretches(tables) if own else ():
            epochs = _epochs(sends, own)
            for epoch, term in terms.items():
                mine = sends.take(epochs == epoch)
                cases += len(mine)
                proofs += _proofs(mine.take(mine.call_ns >= term.known_ns), epoch, term)
        return spelled(NAME, history.key, proofs, cases=cases)

    first_called_ns = {key: one.first_called_ns for key, one in sends_by_key(tables).items()}
    yield from by_key(NAME, first_called_ns, seen, judged)


def _terms(versions: Sequence[PartitionVersion], applied: AppliedOffsets) -> Mapping[int, _Term]:
    """Return the epochs that ended, those with one leader that said it had applied the end."""
    leaders: dict[int, set[int]] = {}
    first: dict[int, PartitionVersion] = {}
    for version in versions:
        first.setdefault(version.leader_epoch, version)
        leaders.setdefault(version.leader_epoch, set()).add(version.leader)
    epochs = sorted(first)
    found: dict[int, _Term] = {}
    for epoch, following in pairwise(epochs):
        (leader, *others) = leaders[epoch]
        ended_by = first[following]
        known_ns = applied.since_ns(leader, ended_by.metadata_offset)
        if leader != NO_LEADER and not others and known_ns is not None:
            found[epoch] = _Term(leader=leader, ended_by=ended_by, known_ns=known_ns)
    return found


def _epochs(sends: AcknowledgedSends, logs: Sequence[ReplicaLog]) -> NDArray[np.int64]:
    """Return the leader epoch in which replicas hold each record; negative if not one of them."""
    found = np.full(len(sends), _NOT_HELD)
    for log in logs:
        held = log.value_at(sends.offset) == sends.value
        epoch = log.leader_epoch[np.searchsorted(log.offset, sends.offset[held])]
        before = found[held]
        found[held] = np.where((before == _NOT_HELD) | (before == epoch), epoch, _AT_ODDS)
    return found


def _proofs(sends: AcknowledgedSends, epoch: int, term: _Term) -> Iterator[Proof]:
    yield from stretch_proofs(
        "{count} records at {range}, which were sent from {min} on and acknowledged by {max}, lie "
        "in leader epoch {epoch}: broker {leader} took them, which had said a second before that "
        "it had applied metadata offset {metadata_offset}, where leader epoch {following} begins "
        "with leader {successor}",
        sends,
        from_ns=sends.call_ns,
        metadata_offset=term.ended_by.metadata_offset,
        decided=("following", "successor"),
        epoch=epoch,
        leader=term.leader,
        following=term.ended_by.leader_epoch,
        successor=term.ended_by.leader,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=deposed_leader_writes,
        tables=(
            "records",
            "replicas",
            "replica_records",
            "metadata_log",
            "metadata_offsets",
            "faults",
        ),
        split=Split.OFFSETS,
        records=acknowledged,
    ),
)
