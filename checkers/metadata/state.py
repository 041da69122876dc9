"""The cluster as the metadata log states it, record by record: a model of Kafka's own replay.

It is written from KIP-631 and its successors (KIP-704 recovery, KIP-841 controlled shutdown,
KIP-868 transactions, KIP-966 ELR) and shares nothing with the histories that other checks are made
of, so that it can be held against them. A record that makes no sense (a change of a partition that
there is not) changes nothing: `illegal_transition` says what is wrong with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fencepost.checkers.metadata.records import MetadataRecord

Place = tuple[str, int]
"""(topic id, partition)."""

_RECOVERING: Final = 1
_NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """The registration of a broker id that is in force."""

    broker_epoch: int
    incarnation_id: str | None
    fenced: bool
    stopping: bool
    """The broker is in controlled shutdown."""

    @property
    def active(self) -> bool:
        """Return whether it may be made a leader (KIP-841)."""
        return not self.fenced and not self.stopping


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAtOffset:
    """A partition at one metadata offset."""

    key: str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    leader: int
    recovering: bool


@dataclass(slots=True, kw_only=True)
class MetadataState:
    """The state that the records so far add up to."""

    brokers: dict[int, BrokerRegistration] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    removed: set[str] = field(default_factory=set)
    """Ids of topics that were removed."""
    partitions: dict[Place, PartitionAtOffset] = field(default_factory=dict)
    feature_levels: dict[str, int] = field(default_factory=dict)
    next_producer_id: int | None = None
    in_transaction: bool = False
    migrated: bool = False
    """It came out of ZooKeeper, whose epochs it goes on with."""

    def level(self, feature: str) -> int | None:
        """Return the level of a feature; None if none was stated."""
        return self.feature_levels.get(feature)

    def key_of(self, record: MetadataRecord) -> str:
        """Return the topic-partition that a record is about."""
        topic = self.topics.get(record.topic_id or "", record.topic or record.topic_id or "?")
        return f"{topic}-{record.partition}"

    def partition_of(self, record: MetadataRecord) -> PartitionAtOffset | None:
        """Return the partition that a record is about, as it is before it."""
        if record.topic_id is None or record.partition is None:
            return None
        return self.partitions.get((record.topic_id, record.partition))

    def apply(self, record: MetadataRecord) -> None:
        """Go on by one record."""
        if effect := _EFFECTS.get(record.type):
            effect(self, record)


def applied(before: PartitionAtOffset, record: MetadataRecord) -> PartitionAtOffset:
    """Return a partition after a PartitionChangeRecord: what it does not name stays."""
    recovery = record.leader_recovery_state
    return replace(
        before,
        replicas=before.replicas if record.replicas is None else record.replicas,
        isr=before.isr if record.isr is None else record.isr,
        elr=before.elr if record.elr is None else record.elr,
        adding=before.adding if record.adding is None else record.adding,
        removing=before.removing if record.removing is None else record.removing,
        leader=before.leader if record.leader is None else record.leader,
        recovering=before.recovering if recovery is None else recovery == _RECOVERING,
    )


def _register(state: MetadataState, record: MetadataRecord) -> None:
    assert record.broker_id is not None
    epoch = record.metadata_offset if record.broker_epoch is None else record.broker_epoch
    state.brokers[record.broker_id] = BrokerRegistration(
        broker_epoch=epoch,
        incarnation_id=record.incarnation_id,
        fenced=record.fenced is not False,
        stopping=record.in_controlled_shutdown is True,
    )


def _change_broker(state: MetadataState, record: MetadataRecord) -> None:
    broker = state.brokers.get(-1 if record.broker_id is None else record.broker_id)
    if broker is None:
        return
    assert record.broker_id is not None
    state.brokers[record.broker_id] = replace(
        broker,
        fenced=broker.fenced if record.fenced is None else record.fenced,
        stopping=broker.stopping or record.in_controlled_shutdown is True,
    )


def _unregister(state: MetadataState, record: MetadataRecord) -> None:
    if record.broker_id is not None:
        state.brokers.pop(record.broker_id, None)


def _add_topic(state: MetadataState, record: MetadataRecord) -> None:
    if record.topic_id is not None:
        state.topics[record.topic_id] = record.topic or record.topic_id


def _remove_topic(state: MetadataState, record: MetadataRecord) -> None:
    if record.topic_id is None:
        return
    state.topics.pop(record.topic_id, None)
    state.removed.add(record.topic_id)
    for place in [place for place in state.partitions if place[0] == record.topic_id]:
        del state.partitions[place]


def _add_partition(state: MetadataState, record: MetadataRecord) -> None:
    assert record.topic_id is not None
    assert record.partition is not None
    state.partitions[record.topic_id, record.partition] = PartitionAtOffset(
        key=state.key_of(record),
        replicas=record.replicas or (),
        isr=record.isr or (),
        elr=record.elr or (),
        adding=record.adding or (),
        removing=record.removing or (),
        leader=_NO_LEADER if record.leader is None else record.leader,
        recovering=record.leader_recovery_state == _RECOVERING,
    )


def _change_partition(state: MetadataState, record: MetadataRecord) -> None:
    before = state.partition_of(record)
    if before is not None:
        assert record.topic_id is not None
        assert record.partition is not None
        state.partitions[record.topic_id, record.partition] = applied(before, record)


def _clear_elr(state: MetadataState, record: MetadataRecord) -> None:
    for place, partition in state.partitions.items():
        if record.topic in (None, "", state.topics.get(place[0])):
            state.partitions[place] = replace(partition, elr=())


def _set_level(state: MetadataState, record: MetadataRecord) -> None:
    if record.name is not None and record.value is not None:
        state.feature_levels[record.name] = int(record.value)


def _give_producer_ids(state: MetadataState, record: MetadataRecord) -> None:
    if record.value is not None:
        state.next_producer_id = int(record.value)


def _begin(state: MetadataState, _: MetadataRecord) -> None:
    state.in_transaction = True


def _end(state: MetadataState, _: MetadataRecord) -> None:
    state.in_transaction = False


def _migrate(state: MetadataState, record: MetadataRecord) -> None:
    state.migrated = state.migrated or record.value not in (None, "0")


_EFFECTS: Final[Mapping[str, Callable[[MetadataState, MetadataRecord], None]]] = {
    "RegisterBrokerRecord": _register,
    "BrokerRegistrationChangeRecord": _change_broker,
    "FenceBrokerRecord": _change_broker,
    "UnfenceBrokerRecord": _change_broker,
    "UnregisterBrokerRecord": _unregister,
    "TopicRecord": _add_topic,
    "RemoveTopicRecord": _remove_topic,
    "PartitionRecord": _add_partition,
    "PartitionChangeRecord": _change_partition,
    "ClearElrRecord": _clear_elr,
    "FeatureLevelRecord": _set_level,
    "KRaftVersionRecord": _set_level,
    "ProducerIdsRecord": _give_producer_ids,
    "BeginTransactionRecord": _begin,
    "EndTransactionRecord": _end,
    "AbortTransactionRecord": _end,
    "ZkMigrationStateRecord": _migrate,
}
