"""The lost values of a key as arrays: where each stood, and what became of it.

- The version under which a value was acknowledged is the one in force when its send returned: the
  likeliest, by the clocks as they are. Forensics are no verdict.
- A leader starts its epoch at the end of its own log, and every log keeps where each epoch starts
  (leader-epoch-checkpoint). So of the epochs after that of the acknowledgement, the first one that
  starts at or below the value's offset, on the disk of the last leader, did without the value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.control_plane.stale_epoch_join import StaleJoin, stale_joins
from fencepost.checkers.control_plane.unfetched_epoch import ProposedJoin, proposed_joins
from fencepost.checkers.facts import Tables
from fencepost.checkers.losses.forensics import ValueFate
from fencepost.checkers.metadata.follower_fetches import follower_fetches
from fencepost.checkers.metadata.isr_changes import NO_REQUESTS, IsrRequests, requests_by_partition
from fencepost.checkers.metadata.partition_states import NO_LEADER, PartitionHistory
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.replicas.replica_logs import ReplicaLog, replica_logs
from fencepost.checkers.rows import taken

UNKNOWN: Final = -1

_FATES: Final = tuple(ValueFate)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostValues:
    """The lost values of a key."""

    key: str
    checks: Mapping[int, tuple[str, ...]]
    """The checks that miss it, by value."""
    offsets: Mapping[int, int]
    """The offset of each value, as told by a check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The evidence on one key."""

    lost: LostValues
    tables: Tables
    seen: MetadataView
    logs: Sequence[ReplicaLog]
    history: PartitionHistory | None
    """The history of the last topic of that name; None if the metadata log has no such topic."""
    requests: IsrRequests
    """The AlterPartition requests about it."""
    stale: Sequence[StaleJoin]
    """The stale joins of its ISR."""
    unfetched: Sequence[ProposedJoin]
    """The joins that were proposed under an epoch of no Fetch."""

    @property
    def last_leader(self) -> str | None:
        """The node that led last of all."""
        versions = self.history.versions if self.history else []
        leaders = [one.leader for one in versions if one.leader != NO_LEADER]
        return self.seen.facts.nodes_at_the_end().get(leaders[-1]) if leaders else None

    @property
    def leader_log(self) -> ReplicaLog | None:
        """The log of that node."""
        leader = self.last_leader
        return next((log for log in self.logs if log.node == leader), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRows:
    """Lost values as parallel arrays, by offset; what is not known is `UNKNOWN`."""

    value: NDArray[np.int64]
    offset: NDArray[np.int64]
    operation: NDArray[np.int64]
    return_ns: NDArray[np.int64]
    version: NDArray[np.int64]
    """Into the history's versions: the one under which it was acknowledged."""
    election: NDArray[np.int64]
    """Leader epoch of the election that did without it."""
    fate: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> "LostRows":
        """Return these, by place."""
        return taken(self, places)

    def stories(self) -> Iterator["LostRows"]:
        """Yield those that share fate and election."""
        group = np.stack([self.fate, self.election], axis=1)
        for one in np.unique(group, axis=0):
            yield self.take(np.flatnonzero(np.all(group == one, axis=1)))

    @property
    def shared_fate(self) -> ValueFate:
        """The fate that all rows of one story share."""
        return _FATES[int(self.fate[0])]


def case_of(lost: LostValues, tables: Tables, seen: MetadataView) -> Case:
    """Return the case of these values."""
    histories = seen.histories_of(lost.key)[-1:]
    wire = tables["wire"]  # one table for all, so that it is read once
    requests = requests_by_partition(wire, seen.partitions)
    places = [(one.topic_id, one.partition) for one in histories]
    mine = requests.get(places[0], NO_REQUESTS) if places else NO_REQUESTS
    fetches = follower_fetches(wire)
    proposed = [join for one in histories for join in proposed_joins(one, mine, fetches, seen)]
    return Case(
        lost=lost,
        tables=tables,
        seen=seen,
        logs=replica_logs(lost.key, tables["replicas"], tables["replica_records"]),
        history=histories[0] if histories else None,
        requests=mine,
        stale=[join for one in stale_joins(wire, seen, histories) for join in one.stale],
        unfetched=[join for join in proposed if not join.is_fetched],
    )


def lost_rows(case: Case) -> LostRows:
    """Return the values with what is known of each."""
    sent = _sent(case)
    value = sent["value"].to_numpy()
    known = pc.fill_null(sent["offset"], UNKNOWN).to_numpy()
    told = np.array([case.lost.offsets.get(one, UNKNOWN) for one in value.tolist()], np.int64)
    offset = np.where(known == UNKNOWN, told, known)
    acknowledged = pc.equal(sent["outcome"], "ok").to_numpy(zero_copy_only=False)
    return_ns = np.where(acknowledged, pc.fill_null(sent["return_ns"], 0).to_numpy(), UNKNOWN)
    version = _versions(case, return_ns)
    rows = LostRows(
        value=value,
        offset=offset,
        operation=sent["operation"].to_numpy(),
        return_ns=return_ns,
        version=version,
        election=_elections(case, offset, version),
        fate=_fates(case, value),
    )
    return rows.take(np.argsort(offset, kind="stable"))


def _sent(case: Case) -> pa.Table:
    records = case.tables["records"]
    values = pa.array(list(case.lost.checks), pa.int64())
    mine = pc.and_(pc.equal(records["key"], case.lost.key), pc.equal(records["f"], "send"))
    return records.filter(pc.and_(mine, pc.is_in(records["value"], values)))


def _versions(case: Case, return_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    if case.history is None:
        return np.full(len(return_ns), UNKNOWN)
    facts = case.seen.facts
    times = np.array([facts.time_ns(one.timestamp_ms) for one in case.history.versions])
    place = np.searchsorted(np.maximum.accumulate(times), return_ns, side="right") - 1
    return np.where(return_ns == UNKNOWN, UNKNOWN, place)


def _elections(
    case: Case, offset: NDArray[np.int64], version: NDArray[np.int64]
) -> NDArray[np.int64]:
    found = np.full(len(offset), UNKNOWN)
    log = case.leader_log
    if case.history is None or log is None:
        return found
    epochs = np.array([one.leader_epoch for one in case.history.versions])
    acknowledged_in = np.where(version >= 0, epochs[np.maximum(version, 0)], epochs[0])
    for epoch, start in reversed(log.leader_epochs):
        found[(epoch > acknowledged_in) & (start <= offset)] = epoch
    return found


def _fates(case: Case, value: NDArray[np.int64]) -> NDArray[np.int64]:
    nodes = case.seen.facts.nodes_at_the_end()
    replicas = case.history.last.replicas if case.history else ()
    whole = {log.node for log in case.logs if log.damage is None}
    every = bool(replicas) and {nodes.get(one) for one in replicas} <= whole
    fate = np.full(len(value), _FATES.index(ValueFate.LOST if every else ValueFate.UNCERTAIN))
    for log in case.logs:
        if log.node != case.last_leader:
            fate[np.isin(value, log.value)] = _FATES.index(ValueFate.UNREACHABLE)
    if case.leader_log is not None:
        fate[np.isin(value, case.leader_log.value)] = _FATES.index(ValueFate.UNREAD)
    return fate
