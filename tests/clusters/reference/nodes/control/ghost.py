"""What must hold of an active controller, whatever it is asked and whenever: a judge beside it.

It replays the committed log by itself, and knows of brokers what they really have applied.
"""

from dataclasses import dataclass, field
from typing import Any

from desk import LEASE

from clusters.node_port.storage import PartitionKey
from clusters.reference.nodes.image import MetadataImage, Partition
from clusters.reference.nodes.messages.control import AlterPartitionRequest
from clusters.reference.nodes.quorum.metadata_log import MetadataLog
from clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)
from clusters.reference.nodes.states import BrokerState


@dataclass(slots=True)
class Ghost:
    """The judge; `wrong` has what it found."""

    image: MetadataImage = field(default_factory=MetadataImage)
    wrong: list[str] = field(default_factory=list)
    applied: dict[tuple[int, int], int] = field(default_factory=dict)
    """What an incarnation has applied at most: by (broker id, incarnation id)."""
    heard: dict[int, int] = field(default_factory=dict)
    """When an active controller last got a heartbeat of the registered epoch."""
    delivered: list[AlterPartitionRequest] = field(default_factory=list)
    unfenced: set[int] = field(default_factory=set)
    """Before the batch that is judged: who registers anew is fenced in the same one."""
    lowest: int = -1
    epochs: dict[int, int] = field(default_factory=dict)

    def committed(self, log: MetadataLog, now: int) -> None:
        """Judge what has been committed since."""
        for batch in log.batches(self.image.offset, log.high_watermark):
            self.unfenced = {one for one, known in self.image.brokers.items() if not known.fenced}
            for offset, record in enumerate(batch.records, batch.base_offset):
                self._judge(offset, record, now)
                self.image.apply(offset, batch.epoch, record)
            self._judge_state(batch.base_offset)

    def elected(self, now: int) -> None:
        self.heard = dict.fromkeys(self.image.brokers, now)

    def _judge(self, offset: int, record: Any, now: int) -> None:
        match record:
            case RegisterBrokerRecord():
                self._registered(offset, record, now)
            case BrokerRegistrationChangeRecord(fenced=True):
                led = [p for p in self.image.partitions.values() if p.leader == record.broker_id]
                self._claim(not led, f"{offset}: {record.broker_id} is fenced and leads")
            case BrokerRegistrationChangeRecord(fenced=False):
                self._unfenced(offset, record.broker_id)
            case PartitionChangeRecord():
                self._changed(offset, record)
            case ProducerIdsRecord():
                grows = record.next_producer_id > self.image.next_producer_id
                self._claim(grows, f"{offset}: producer ids are given away twice")

    def _registered(self, offset: int, record: RegisterBrokerRecord, now: int) -> None:
        broker_id = record.broker_id
        last = self.epochs.get(broker_id, -1)
        self._claim(record.broker_epoch > last, f"{offset}: the epoch of {broker_id} does not grow")
        self.epochs[broker_id] = record.broker_epoch
        old = self.image.brokers.get(broker_id)
        known = old is not None and broker_id in self.unfenced
        if known and old is not None and old.incarnation_id != record.incarnation_id:
            silent = now - self.heard.get(broker_id, 0)
            self._claim(silent >= LEASE, f"{offset}: {broker_id} is alive and registered twice")
        levels = {name: (least, most) for name, least, most in record.features}
        for name, level in self.image.features.items():
            least, most = levels.get(name, (0, 0))
            self._claim(least <= level <= most, f"{offset}: {broker_id} lacks {name} {level}")

    def _unfenced(self, offset: int, broker_id: int) -> None:
        known = self.image.brokers[broker_id]
        has = self.applied.get((broker_id, known.incarnation_id), 0)
        self._claim(has > known.offset, f"{offset}: {broker_id} is unfenced behind its start")

    def _changed(self, offset: int, record: PartitionChangeRecord) -> None:
        key = (record.topic_id, record.partition)
        old = self.image.partitions[key]
        isr = old.isr if record.isr is None else record.isr
        if record.leader not in (None, -1, old.leader):
            self._elected(offset, old, record)
        for joiner in isr:
            if joiner not in old.isr and not record.recovering:
                self._claim(self._eligible(joiner), f"{offset}: {joiner} joins and may not")
                fresh = self._fresh(key, old, joiner)
                self._claim(fresh, f"{offset}: {joiner} joins by an older epoch")

    def _elected(self, offset: int, old: Partition, record: PartitionChangeRecord) -> None:
        leader = record.leader
        assert leader is not None
        self._claim(self._eligible(leader), f"{offset}: {leader} is elected and may not be")
        clean = leader in old.isr or record.recovering or record.replicas is not None
        self._claim(bool(clean), f"{offset}: {leader} is elected from outside of the ISR")
        self._claim(record.bumps_leader_epoch, f"{offset}: two lead in one leader epoch")

    def _fresh(self, key: PartitionKey, old: Partition, joiner: int) -> bool:
        """Whether a proposal by this leader, of this version, means the registered incarnation."""
        for request in self.delivered:
            for item in request.items:
                version = (item.key, item.leader_epoch, item.partition_epoch)
                if version == (key, old.leader_epoch, old.partition_epoch) and joiner in item.isr:
                    epoch = item.isr_epochs[item.isr.index(joiner)]
                    sender = self.image.brokers[old.leader].broker_epoch
                    sent = (request.broker_id, request.broker_epoch) == (old.leader, sender)
                    if sent and epoch == self.image.brokers[joiner].broker_epoch:
                        return True
        return False

    def _eligible(self, broker_id: int) -> bool:
        known = self.image.brokers.get(broker_id)
        return known is not None and not known.fenced and not known.in_controlled_shutdown

    def _judge_state(self, offset: int) -> None:
        brokers = self.image.brokers
        for key, one in self.image.partitions.items():
            where = f"{offset}: {key[1]} of {key[0] % 1000}"
            self._claim(bool(one.isr), f"{where} has an empty ISR")
            self._claim(set(one.isr) <= set(one.replicas), f"{where} has strangers in its ISR")
            self._claim(len(set(one.isr)) == len(one.isr), f"{where} has a member twice")
            self._claim(one.leader in (*one.isr, -1), f"{where} is led from outside of its ISR")
            fenced = [member for member in one.isr if brokers[member].fenced]
            self._claim(not fenced or len(one.isr) == 1, f"{where} has fenced members")
            self._claim(one.leader not in fenced, f"{where} is led by a fenced broker")

    # Answers.

    def taken(self, now: int, request: Any) -> None:
        """An active controller got a heartbeat."""
        known = self.image.brokers.get(request.broker_id)
        if known is not None and known.broker_epoch == request.broker_epoch:
            self.heard[request.broker_id] = now

    def answered(self, broker_id: int, broker_epoch: int, response: Any) -> None:
        """A heartbeat was answered without an error."""
        known = self.image.brokers[broker_id]
        self._claim(known.broker_epoch == broker_epoch, f"{broker_id}: a stale epoch is renewed")
        if response.next_state == BrokerState.NOT_RUNNING:
            led = [one for one in self.image.partitions.values() if one.leader == broker_id]
            self._claim(not led, f"{broker_id} is let go and leads")
        lowest = response.lowest_acknowledged_offset
        if lowest >= 0:
            self._claim(lowest >= self.lowest, f"the lowest offset goes back to {lowest}")
            self._claim(self._all_have(lowest), f"not everybody has {lowest}")
            self.lowest = lowest

    def acknowledged(self, end_offset: int) -> None:
        """A client's write was acknowledged."""
        self._claim(end_offset <= self.image.offset, f"{end_offset} is told and not committed")
        self._claim(self._all_have(end_offset), f"{end_offset} is told and not shown everywhere")

    def late(self, now: int) -> None:
        """Time has passed, and the controller had its turn with nothing undecided."""
        for broker_id, known in self.image.brokers.items():
            alive = known.fenced or now - self.heard.get(broker_id, 0) <= LEASE
            self._claim(alive, f"{broker_id} is silent and not fenced")

    def _all_have(self, offset: int) -> bool:
        return all(
            self.applied.get((broker_id, known.incarnation_id), 0) >= offset
            for broker_id, known in self.image.brokers.items()
            if not known.fenced
        )

    def _claim(self, holds: bool, otherwise: str) -> None:  # noqa: FBT001
        if not holds:
            self.wrong.append(otherwise)
