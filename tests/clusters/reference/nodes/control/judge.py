"""What must hold of an active controller alone, whatever it is asked and whenever.

The oracle of trials judges what it decides and answers; brokers are processes of the storm, whose
insides it is shown. What it would hear of brokers and clients in a cluster is judged here: who is
unfenced has its own registration, an election begins a leader epoch, a member joins by a proposal
for what there is, no producer id is given twice, and a client's write is answered once all have it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from desk import CONTROLLER, LEASE, Desk

from fencepost.clusters.node_port.effects import NOTE, SEND
from fencepost.clusters.node_port.notes import ACKNOWLEDGED_METADATA, COMMITTED_METADATA
from fencepost.clusters.node_port.storage import Batch, MetadataBatch, PartitionKey
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionRequest,
    BrokerHeartbeatResponse,
)
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
)
from fencepost.clusters.reference.oracle.metadata_oracle import Led
from fencepost.clusters.reference.oracle.oracle import DELIVERED, Oracle


class Broker(Protocol):
    """A broker's process."""

    incarnation_id: int
    applied: int


class Judge:
    """Looks at a desk; `wrong` has what it found."""

    def __init__(self, desk: Desk, brokers: Callable[[int], Broker]) -> None:
        self._desk = desk
        self._brokers = brokers
        self._oracle = Oracle(nodes=self, lease_ns=LEASE)
        self._seen = 0
        self._wrong: list[str] = []
        self._proposed: list[AlterPartitionRequest] = []
        self._next_producer_id = 0
        self._now = 0

    @property
    def wrong(self) -> list[str]:
        return [*map(str, self._oracle.findings), *self._wrong]

    def arrives(self, source: int, request: Any) -> None:
        """The controller is about to take a request."""
        if isinstance(request, AlterPartitionRequest):
            self._proposed.append(request)
        elif request.kind in DELIVERED:
            self._oracle.delivered(self._desk.now, source, CONTROLLER, request.kind, request)

    def look(self) -> None:
        """Judge what was done since; answers by what was committed when they were given.

        Proposals are judged by what they come to: more may have been decided before the answer.
        """
        desk, oracle = self._desk, self._oracle
        for effect in desk.effects[self._seen :]:
            if effect[0] == NOTE:
                oracle.note(desk.now, CONTROLLER, effect)
                if effect[1] == ACKNOWLEDGED_METADATA:
                    self._acknowledged(effect[2])
            elif effect[0] == SEND and isinstance(effect[2], BrokerHeartbeatResponse):
                oracle.sent(desk.now, CONTROLLER, effect[1], effect[2].kind, effect[2])
        self._seen = len(desk.effects)
        log = desk.quorum.log
        for batch in log.batches(oracle.decided.offset, log.high_watermark):
            self._wrong += self._amiss(batch)
            self._now = max(self._now + 1, desk.now)  # no two decisions have one
            oracle.note(self._now, CONTROLLER, (NOTE, COMMITTED_METADATA, batch.end_offset))

    def _amiss(self, batch: MetadataBatch) -> Iterator[str]:
        for offset, record in enumerate(batch.records, batch.base_offset):
            if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced is False:
                known = self._oracle.decided.brokers[record.broker_id]
                if not self._has(record.broker_id, known.broker_epoch + 1):
                    yield f"{offset}: {record.broker_id} is unfenced behind its start"
            elif isinstance(record, ProducerIdsRecord):
                if record.next_producer_id <= self._next_producer_id:
                    yield f"{offset}: producer ids are given away twice"
                self._next_producer_id = record.next_producer_id
            elif isinstance(record, PartitionChangeRecord):
                yield from self._changed(offset, record)

    def _changed(self, offset: int, record: PartitionChangeRecord) -> Iterator[str]:
        key, isr = (record.topic_id, record.partition), record.isr or ()
        led = self._oracle.decided.partitions[key]
        if record.leader not in (None, -1, led.leader) and not record.bumps_leader_epoch:
            yield f"{offset}: two lead in one leader epoch"
        if len(set(isr)) != len(isr):
            yield f"{offset}: a member is twice in the ISR"
        for joiner in sorted({*isr} - {*led.isr}):
            if not record.recovering and not self._was_proposed(key, led, joiner):
                yield f"{offset}: {joiner} joins and was not proposed by this leader, as it is"

    def _was_proposed(self, key: PartitionKey, led: Led, joiner: int) -> bool:
        """Whether a proposal by its leader, of this version, means the registered incarnation."""
        brokers = self._oracle.decided.brokers
        leader = (led.leader, brokers[led.leader].broker_epoch)
        version = (key, led.leader_epoch, led.partition_epoch)
        return any(
            (joiner, brokers[joiner].broker_epoch) in zip(item.isr, item.isr_epochs, strict=True)
            for request in self._proposed
            if (request.broker_id, request.broker_epoch) == leader
            for item in request.items
            if (item.key, item.leader_epoch, item.partition_epoch) == version
        )

    def _acknowledged(self, end: int) -> None:
        if end > self._oracle.decided.offset:
            self._wrong.append(f"{end} is told and not committed")
        unfenced = (
            one for one, broker in self._oracle.decided.brokers.items() if not broker.fenced
        )
        lacking = [one for one in unfenced if not self._has(one, end)]
        if lacking:
            self._wrong.append(f"{end} is told and {lacking} do not show it")

    def _has(self, broker_id: int, end: int) -> bool:
        """Whether the registered incarnation has applied so much, or is gone."""
        known, broker = self._oracle.decided.brokers[broker_id], self._brokers(broker_id)
        return broker.incarnation_id != known.incarnation_id or broker.applied >= end

    # What the oracle looks at.

    def metadata(self, _node: int, start: int, end: int) -> Sequence[MetadataBatch]:
        return self._desk.quorum.log.batches(start, end)

    def records(self, _node: int, _key: PartitionKey, _start: int, _end: int) -> Sequence[Batch]:
        return ()

    def applied(self, node: int) -> int:
        return self._brokers(node).applied

    def level(self, _node: int) -> int:
        return 0

    def incarnation(self, node: int) -> int:
        return self._brokers(node).incarnation_id
