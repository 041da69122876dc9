"""The ghost of the metadata log: what was ever committed, by whomever, and the state it adds up to.

The first node that counts a record as committed puts it there; whoever counts another one at that
offset, or elects a second leader in one epoch, contradicts it. Each record is replayed into a model
of its own, which knows the rules of membership: who may be in an ISR, who may lead, what may grow.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.levels import LEVEL_REGISTRATION, METADATA_VERSION
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from fencepost.clusters.reference.oracle.finding import Nodes

Problem = tuple[str, str]
"""(anomaly, words)."""

_UNCLEAN: Final = "unclean.leader.election.enable"


@dataclass(slots=True)
class DecidedBroker:
    """A registration as it was decided."""

    broker_epoch: int
    incarnation_id: int
    fenced: bool
    leaving: bool
    features: tuple[tuple[str, int, int], ...]
    registered_ns: int
    """The time when it was first seen to be committed."""
    fenced_ns: int = -1
    """The time when it was fenced last, since then; -1: never, or by its registration."""


@dataclass(slots=True)
class Led:
    """A partition as it was decided."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int


@dataclass(slots=True)
class Decisions:
    """The state that all decisions add up to, wherever they are kept."""

    brokers: dict[int, DecidedBroker] = field(default_factory=dict)
    partitions: dict[PartitionKey, Led] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    """Settings of topics by (topic, name)."""


@dataclass(slots=True)
class MetadataOracle(Decisions):
    """The decided metadata of a quorum, up to but without `offset`."""

    offset: int = 0
    level: int = LEVEL_REGISTRATION
    level_offset: int = -1
    """The offset at which the present level was decided."""
    joined: list[tuple[PartitionKey, Led, Led]] = field(default_factory=list)
    """(key, before, after) of changes that let a member in, until a reader clears them."""
    changed: list[tuple[PartitionKey, Led, Led]] = field(default_factory=list)
    """The same of all changes of ISRs."""
    registered: list[tuple[int, DecidedBroker | None, DecidedBroker]] = field(default_factory=list)
    """(broker id, before, after)."""
    _log: list[tuple[int, Any]] = field(default_factory=list)
    """(epoch, record) by offset."""
    _leaders: dict[int, int] = field(default_factory=dict)
    """The elected leaders, by epoch."""
    _counted: dict[int, int] = field(default_factory=dict)
    """The offset up to which each node has counted as committed, since its start."""
    _next_producer_id: int = 0

    def restarted(self, node: int) -> None:
        """The node starts anew: it may count from the beginning again."""
        self._counted.pop(node, None)

    def was_elected(self, node: int, epoch: int) -> Iterator[Problem]:
        """A controller says that it leads the quorum in this epoch."""
        other = self._leaders.setdefault(epoch, node)
        if other != node:
            yield (
                "two-leaders",
                f"controllers {other} and {node} were both elected in epoch {epoch}",
            )

    def was_counted(self, node: int, end: int, nodes: Nodes, now: int) -> Iterator[Problem]:
        """A node counts everything below `end` as committed."""
        start = self._counted.get(node, 0)
        self._counted[node] = max(start, end)
        for batch in nodes.metadata(node, start, end):
            for offset, record in enumerate(batch.records, start=batch.base_offset):
                if start <= offset < end:
                    yield from self._one(node, offset, batch.epoch, record, now)

    def _one(self, node: int, offset: int, epoch: int, record: Any, now: int) -> Iterator[Problem]:
        if offset < self.offset:
            known_epoch, known = self._log[offset]
            if known_epoch != epoch or known != record:
                yield (
                    "metadata-divergence",
                    (
                        f"at offset {offset} node {node} has {record} of epoch {epoch}, "
                        f"committed was {known} of epoch {known_epoch}"
                    ),
                )
            return
        if offset > self.offset:
            # A snapshot hides what is between: it was not counted one by one.
            return
        self._log.append((epoch, record))
        replay = _REPLAY.get(type(record))
        if replay is not None:
            yield from replay(self, offset, record, now)
        self.offset = offset + 1

    def _register(self, offset: int, record: RegisterBrokerRecord, now: int) -> Iterator[Problem]:
        old = self.brokers.get(record.broker_id)
        new = DecidedBroker(
            record.broker_epoch,
            record.incarnation_id,
            record.fenced,
            record.in_controlled_shutdown,
            record.features,
            now,
        )
        self.brokers[record.broker_id] = new
        self.registered.append((record.broker_id, old, new))
        for name, low, high in record.features:
            if name == METADATA_VERSION and not low <= self.level <= high:
                yield (
                    "illegal-transition",
                    (
                        f"offset {offset} registers broker {record.broker_id}, which knows levels "
                        f"{low} to {high}, at level {self.level}"
                    ),
                )
        if old is not None and new.broker_epoch <= old.broker_epoch:
            yield (
                "epoch-went-back",
                (
                    f"broker {record.broker_id} was registered with epoch {new.broker_epoch} "
                    f"at offset {offset} after epoch {old.broker_epoch}"
                ),
            )

    def _unregister(
        self, _offset: int, record: UnregisterBrokerRecord, _now: int
    ) -> Iterator[Problem]:
        self.brokers.pop(record.broker_id, None)
        return iter(())

    def _registration_changed(
        self, offset: int, record: BrokerRegistrationChangeRecord, now: int
    ) -> Iterator[Problem]:
        broker = self.brokers.get(record.broker_id)
        if broker is None:
            return
        if record.broker_epoch != broker.broker_epoch:
            yield (
                "illegal-transition",
                (
                    f"offset {offset} changes broker {record.broker_id} of epoch "
                    f"{record.broker_epoch}, registered is {broker.broker_epoch}"
                ),
            )
        if record.fenced is not None:
            broker.fenced = record.fenced
            broker.fenced_ns = now if record.fenced else -1
        if record.in_controlled_shutdown is not None:
            broker.leaving = record.in_controlled_shutdown

    def _feature(self, offset: int, record: FeatureLevelRecord, _now: int) -> Iterator[Problem]:
        if record.name == METADATA_VERSION:
            self.level, self.level_offset = record.level, offset
        return iter(())

    def _topic(self, _offset: int, record: TopicRecord, _now: int) -> Iterator[Problem]:
        self.names[record.topic_id] = record.name
        return iter(())

    def _remove_topic(
        self, _offset: int, record: RemoveTopicRecord, _now: int
    ) -> Iterator[Problem]:
        self.names.pop(record.topic_id, None)
        for key in [key for key in self.partitions if key[0] == record.topic_id]:
            del self.partitions[key]
        return iter(())

    def _config(self, _offset: int, record: ConfigRecord, _now: int) -> Iterator[Problem]:
        place = (record.resource_name, record.name)
        if record.value is None:
            self.settings.pop(place, None)
        else:
            self.settings[place] = record.value
        return iter(())

    def _producer_ids(self, offset: int, record: ProducerIdsRecord, _now: int) -> Iterator[Problem]:
        if 0 < record.next_producer_id <= self._next_producer_id:
            yield (
                "epoch-went-back",
                (
                    f"offset {offset} gives producer ids from {record.next_producer_id} on again, "
                    f"below {self._next_producer_id}"
                ),
            )
        self._next_producer_id = record.next_producer_id

    def _partition(self, offset: int, record: PartitionRecord, _now: int) -> Iterator[Problem]:
        key = (record.topic_id, record.partition)
        new = Led(
            record.replicas,
            record.isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
        )
        self.partitions[key] = new
        yield from self._shape(offset, key, new)

    def _partition_changed(
        self, offset: int, record: PartitionChangeRecord, _now: int
    ) -> Iterator[Problem]:
        key = (record.topic_id, record.partition)
        old = self.partitions.get(key)
        if old is None:
            yield "illegal-transition", f"offset {offset} changes partition {key}, which is not"
            return
        elects = record.leader is not None
        new = Led(
            old.replicas if record.replicas is None else record.replicas,
            old.isr if record.isr is None else record.isr,
            old.leader if record.leader is None else record.leader,
            old.leader_epoch + (elects and record.bumps_leader_epoch),
            old.partition_epoch + 1,
        )
        self.partitions[key] = new
        if set(new.isr) - set(old.isr):
            self.joined.append((key, old, new))
        if new.isr != old.isr:
            self.changed.append((key, old, new))
        # The end of a reassignment elects from the ISR that it makes, and an unclean election says
        # that it is one.
        if elects and record.replicas is None and not record.recovering:
            yield from self._election(offset, key, old, new)
        yield from self._members(offset, key, old, new)
        yield from self._shape(offset, key, new)

    def _shape(self, offset: int, key: PartitionKey, led: Led) -> Iterator[Problem]:
        if not led.isr:
            yield "empty-isr", f"offset {offset} leaves {key} without an ISR"
        if not set(led.isr) <= set(led.replicas):
            yield (
                "isr-not-in-replicas",
                f"offset {offset}: {key} has isr {led.isr} of replicas {led.replicas}",
            )
        if led.leader >= 0 and led.leader not in led.isr:
            yield (
                "two-leaders",
                f"offset {offset}: {key} is led by {led.leader}, not in its isr {led.isr}",
            )

    def _members(self, offset: int, key: PartitionKey, old: Led, new: Led) -> Iterator[Problem]:
        for member in sorted(set(new.isr) - set(old.isr)):
            broker = self.brokers.get(member)
            if broker is None or broker.fenced or broker.leaving:
                if self._unclean(key) and new.isr == (member,):
                    continue
                state = "not registered" if broker is None else "fenced or leaving"
                yield (
                    "ineligible-member",
                    f"offset {offset}: broker {member} joins the isr of {key} and is {state}",
                )

    def _election(self, offset: int, key: PartitionKey, old: Led, new: Led) -> Iterator[Problem]:
        if new.leader < 0:
            return
        broker = self.brokers.get(new.leader)
        if broker is None or broker.fenced:
            yield (
                "illegal-transition",
                f"offset {offset}: broker {new.leader} is elected for {key} while fenced",
            )
        if new.leader not in old.isr and not self._unclean(key):
            yield (
                "two-leaders",
                (
                    f"offset {offset}: broker {new.leader} is elected for {key} "
                    f"outside its isr {old.isr}"
                ),
            )

    def _unclean(self, key: PartitionKey) -> bool:
        return self.settings.get((self.names.get(key[0], ""), _UNCLEAN)) == "true"

    def said(self, offset: int) -> int:
        """Return where what is below the offset ends, but for NoOpRecords: they say nothing."""
        while 0 < offset <= len(self._log) and isinstance(self._log[offset - 1][1], NoOpRecord):
            offset -= 1
        return offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last committed record; -1: no record is committed."""
        return self._log[-1][0] if self._log else -1

    def epochs(self, start: int) -> dict[int, int]:
        """The epochs of the committed records from `start` on, by offset."""
        return {start + place: epoch for place, (epoch, _) in enumerate(self._log[start:])}

    def fenced_members(self) -> Iterator[Problem]:
        """Leaders that are fenced, and members of ISRs of two or more, after a whole decision."""
        for key, led in self.partitions.items():
            leader = self.brokers.get(led.leader)
            if leader is not None and leader.fenced:
                yield "illegal-transition", f"broker {led.leader} is fenced and leads {key}"
            if len(led.isr) > 1:
                for member in led.isr:
                    broker = self.brokers.get(member)
                    if broker is not None and broker.fenced:
                        yield (
                            "ineligible-member",
                            f"broker {member} is fenced and in the isr {led.isr} of {key}",
                        )


_REPLAY: Final[dict[type, Any]] = {
    RegisterBrokerRecord: MetadataOracle._register,  # noqa: SLF001
    UnregisterBrokerRecord: MetadataOracle._unregister,  # noqa: SLF001
    BrokerRegistrationChangeRecord: MetadataOracle._registration_changed,  # noqa: SLF001
    FeatureLevelRecord: MetadataOracle._feature,  # noqa: SLF001
    TopicRecord: MetadataOracle._topic,  # noqa: SLF001
    RemoveTopicRecord: MetadataOracle._remove_topic,  # noqa: SLF001
    ConfigRecord: MetadataOracle._config,  # noqa: SLF001
    ProducerIdsRecord: MetadataOracle._producer_ids,  # noqa: SLF001
    PartitionRecord: MetadataOracle._partition,  # noqa: SLF001
    PartitionChangeRecord: MetadataOracle._partition_changed,  # noqa: SLF001
}
