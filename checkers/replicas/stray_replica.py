"""D26 stray-replica: A broker keeps a replica that was moved away.

In heartbeats after its registration was unfenced a broker named two metadata offsets beyond the
version of a partition that removed it from the replicas, is not a replica in the end either, and
has the replica on its disk when the run is over. Deleted topics are not judged, nor brokers whose
disks were changed or refused to be written.

A broker that applies metadata by which it is no replica any more deletes that replica, or marks it
as deleted at once. What was moved away while it was down it deletes as it starts, by the first
image that it publishes: every release from 3.3 on does (KAFKA-13127; from 3.7 on while the logs are
loaded, KAFKA-14616). A replica that stays may go on leading in its broker's own eyes, with a leader
epoch and an ISR that no controller decided.

Not every heartbeat says so. A broker that starts reads metadata, and tells how far it got, while
nothing applies them yet: what counts it says after its registration was unfenced, which it asks for
once it has published an image. And brokers before 3.5 take note of the offsets of several batches
first, and then apply them: so it has to have said two offsets beyond that version.

Not judged: a topic that was deleted; a broker whose disk was changed, or refused to be written; a
cluster that migrates, where brokers add a count of batches to an offset
(`kafka.server.metadata.OffsetTrackingListener` of 3.9.2).

Meaning: The replica takes room for good, and may go on leading in its broker's eyes: clients and
followers that have not heard of the move are served by it.
Case: a broker that a partition was moved away from, and that said so
Source: KIP-631, PartitionChangeRecord; KAFKA-16892, KAFKA-13127, KAFKA-14616;
`BrokerMetadataPublisher.findStrayPartitions` of 3.3 to 3.6, `LogManager.deleteStrayKRaftReplicas`
and `isStrayKraftReplica` since then
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.disk_faults import DISK_FAULTS, DISK_REFUSALS
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory
from fencepost.checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("metadata_log", "metadata_offsets", "replicas"),
)
NAME: Final = ENTRY.name

_Said = Mapping[str, tuple[NDArray[np.int64], NDArray[np.int64]]]
"""By node the offsets that it said it has applied, ascending, and when it said each first.

Only of times when it surely applied what it read.
"""


def stray_replicas(tables: Tables, seen: MetadataView) -> Judged:
    """Find replicas that were to be gone.

    Reads `metadata_log`, `metadata_offsets`, `replicas` and `faults`.
    """
    said = {} if seen.facts.migrating else _said(tables, seen)
    broken = _broken(tables["faults"])
    nodes = {
        broker_id: node for node, broker_id in seen.facts.node_ids.items() if node not in broken
    }
    kept = {
        (row["node"], row["topic_id"], row["key"]): row["log_end_offset"]
        for row in tables["replicas"].to_pylist()
    }

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        for broker_id, gone in () if history.deleted else _moved_away(history):
            node = nodes.get(broker_id, "")
            known_ns = _known_ns(said, node, gone)
            if known_ns is not None:
                end_offset = kept.get((node, history.topic_id, history.key))
                yield (
                    None
                    if end_offset is None
                    else _proof(history, node, gone, known_ns, end_offset)
                )

    return by_partition(NAME, seen, judged)


def _said(tables: Tables, seen: MetadataView) -> _Said:
    offsets, names = tables["metadata_offsets"], seen.facts.nodes()
    beats = offsets.filter(pc.equal(offsets["source"], "heartbeat"))
    found = {}
    for broker in seen.brokers.values():
        node = names.get(broker.broker_id, "")
        mine = beats.filter(pc.equal(beats["node"], node))
        time_ns = mine["time_ns"].to_numpy()
        applying = np.zeros(len(mine), dtype=bool)
        for from_ns, until_ns in _applying(broker, seen.facts):
            applying |= (time_ns > from_ns) & (time_ns < until_ns)
        first = mine.filter(pa.array(applying)).group_by("metadata_offset")
        first = first.aggregate([("time_ns", "min")]).sort_by("metadata_offset")
        found[node] = first["metadata_offset"].to_numpy(), first["time_ns_min"].to_numpy()
    return found


def _applying(broker: BrokerHistory, facts: Facts) -> Iterator[tuple[int, int]]:
    """Yield from when to when each registration of a broker surely had been unfenced."""
    made = broker.registrations()
    for place, registration in enumerate(made):
        unfenced = (
            one
            for one in broker.versions
            if one.registration_offset == registration.registration_offset and not one.fenced
        )
        following = made[place + 1 : place + 2]
        until_ns = facts.earliest_ns(following[0].timestamp_ms) if following else OPEN_NS
        for one in islice(unfenced, 1):
            yield facts.latest_ns(one.timestamp_ms), until_ns


def _broken(faults: pa.Table) -> frozenset[str]:
    """Return the nodes whose disks were changed, or refused to be written."""
    return frozenset(
        node
        for row in faults.select(["fault", "targets"]).to_pylist()
        if row["fault"] in DISK_FAULTS | DISK_REFUSALS
        for node in row["targets"]
    )


def _moved_away(history: PartitionHistory) -> Iterator[tuple[int, PartitionVersion]]:
    """Yield the brokers that are no replicas in the end, each with the version that made it so."""
    gone: dict[int, PartitionVersion] = {}
    for before, after in history.steps():
        for broker_id in set(before.replicas) - set(after.replicas):
            gone[broker_id] = after
    for broker_id in sorted(set(gone) - set(history.last.replicas)):
        yield broker_id, gone[broker_id]


def _known_ns(said: _Said, node: str, gone: PartitionVersion) -> int | None:
    """Return when the broker had said two offsets beyond that version; None if it never had."""
    if node not in said:
        return None
    offset, time_ns = said[node]
    later = np.sort(time_ns[np.searchsorted(offset, gone.metadata_offset, side="right") :])
    return int(later[1]) if len(later) > 1 else None


def _proof(
    history: PartitionHistory, node: str, gone: PartitionVersion, known_ns: int, end_offset: int
) -> Proof:
    return Proof.of(
        "{node} has a replica of {key} ({topic_id}) on its disk in the end, up to offset {end}; "
        "since metadata offset {metadata_offset} the replicas are {replicas}, and by "
        "{known} it had said twice that it had applied more than that",
        offsets={"end": end_offset},
        metadata_offsets={"metadata_offset": gone.metadata_offset},
        times={"known": known_ns},
        sources={"replicas": "metadata_offset"},
        node=node,
        key=history.key,
        topic_id=history.topic_id,
        replicas=str(list(gone.replicas)),
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stray_replicas,
        tables=("metadata_log", "metadata_offsets", "replicas", "faults"),
    ),
)
