"""C13 epoch-check-bypassed: the controller let in a member under another broker epoch (KIP-903).

AlterPartition version 3 names the broker epoch of every member of the ISR it asks for. The
controller compares each with the registration in its log and refuses the partition
(INELIGIBLE_REPLICA) if one differs; -1 is not compared. So of a request that was answered by the
version it made, each named epoch must be the one that its member had registered with last before
that version's metadata offset. An answer without a new version is not judged: nobody knows at which
offset it was given.

Source: KIP-903; `ReplicationControlManager.ineligibleReplicasForIsr`.
"""

from collections.abc import Iterator
from typing import Final

from checkers.anomaly import Proof
from checkers.control_plane.view import View, by_partition, clock, view
from checkers.kernels.broker_states import BrokerVersion
from checkers.kernels.facts import Facts, Judged, Tables
from checkers.kernels.isr_changes import NO_REQUESTS, Requests, proposals, requests_by_partition
from checkers.kernels.partition_states import Cause, PartitionHistory, PartitionVersion
from checkers.kernels.rpcs import Rpc

__all__ = ["NAME", "bypassed_epoch_checks"]

NAME: Final = "epoch-check-bypassed"
_UNCHECKED: Final = -1


def bypassed_epoch_checks(tables: Tables, facts: Facts) -> Judged:
    """Members under other epochs, by partition. Reads `metadata_log` and `wire`."""
    seen = view(tables, facts)
    requests = requests_by_partition(tables["wire"], seen.partitions)

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        mine = requests.get((history.topic_id, history.partition), NO_REQUESTS)
        return _judged(history, mine, seen)

    return by_partition(NAME, seen, judged)


def _judged(history: PartitionHistory, requests: Requests, seen: View) -> Iterator[Proof | None]:
    for version in history.versions:
        if version.cause is Cause.CHANGED:
            for request in proposals(version, requests).sure:
                yield from _members(history, version, request, seen)


def _members(
    history: PartitionHistory, version: PartitionVersion, request: Rpc, seen: View
) -> Iterator[Proof | None]:
    """An answer a member whose epoch was to be checked."""
    members, epochs = request.of("isr") or (), request.of("isr_epochs") or ()
    for broker_id, epoch in zip(members, epochs, strict=False):
        broker = seen.broker_before(broker_id, version.metadata_offset)
        if epoch == _UNCHECKED or broker is None:
            continue
        named = f"broker {broker_id}", epoch
        same = epoch == broker.broker_epoch
        yield None if same else _proof(history, version, request, broker, named=named)


def _proof(
    history: PartitionHistory,
    version: PartitionVersion,
    request: Rpc,
    broker: BrokerVersion,
    *,
    named: tuple[str, int],
) -> Proof:
    member, epoch = named
    return Proof(
        operations=(),
        offsets=(broker.registration_offset, version.metadata_offset),
        values=(epoch, broker.broker_epoch),
        frames=tuple(one for one in (request.frame, request.answer_frame) if one is not None),
        detail=f"the AlterPartition of {history.key} sent at {clock(request.asked_ns)} (frame "
        f"{request.frame}) named {member} with broker epoch {epoch}; it had "
        f"registered with {broker.broker_epoch} at metadata offset "
        f"{broker.registration_offset}, and {request.target} made the change at metadata "
        f"offset {version.metadata_offset} instead of answering INELIGIBLE_REPLICA",
    )
