"""The state that the metadata log adds up to: what every controller and every broker holds.

`apply` is the only way to change it, record by record in the order of the log, and knows no rule:
what was committed holds. Partitions and registrations are values, replaced and never changed, so
that an image can be shared piece by piece.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.levels import LEVEL_REGISTRATION, METADATA_VERSION
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    LeaderChangeMessage,
    Listener,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

_TOPIC_RESOURCE: Final = 2


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker as it registered last."""

    broker_id: int
    broker_epoch: int
    incarnation_id: int
    fenced: bool
    in_controlled_shutdown: bool
    listeners: tuple[Listener, ...]
    features: tuple[tuple[str, int, int], ...]
    rack: str | None
    offset: int
    """The offset of its registration's record."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """A partition as it is."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """The leader; -1: none."""
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    """Led since an unclean election; it ends when the leader says that it has recovered."""


@dataclass(slots=True)
class MetadataImage:
    """The image of all metadata, up to but without `offset`."""

    offset: int = 0
    epoch: int = 0
    """The epoch of the last record applied."""
    brokers: dict[int, Registration] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    """Topic ids by name."""
    names: dict[int, str] = field(default_factory=dict)
    """The same the other way round."""
    partitions: dict[PartitionKey, PartitionImage] = field(default_factory=dict)
    keys: dict[int, list[PartitionKey]] = field(default_factory=dict)
    """The same by topic id, for `partitions_of`."""
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """Settings by (resource type, resource name)."""
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0

    @property
    def level(self) -> int:
        """The metadata.version in force."""
        return self.features.get(METADATA_VERSION, LEVEL_REGISTRATION)

    def setting(self, topic: str, name: str) -> str | None:
        """A topic's own setting."""
        return self.configs.get((_TOPIC_RESOURCE, topic), {}).get(name)

    def partitions_of(self, topic_id: int) -> list[PartitionKey]:
        """The keys of a topic's partitions, in order."""
        return sorted(self.keys.get(topic_id, ()))

    def apply(self, offset: int, epoch: int, record: MetadataRecord) -> None:
        """Replay the record at this offset, which has to be the next one."""
        assert offset == self.offset, (offset, self.offset)
        _REPLAY[type(record)](self, record)
        self.offset = offset + 1
        self.epoch = epoch

    def records(self) -> tuple[MetadataRecord, ...]:
        """Records that add up to this image: the content of a snapshot."""
        return (
            *(FeatureLevelRecord(name, level) for name, level in self.features.items()),
            *(_registered(one) for one in self.brokers.values()),
            *(record for topic in self.topics.items() for record in self._topic(*topic)),
            *(
                ConfigRecord(kind, resource, name, value)
                for (kind, resource), settings in self.configs.items()
                for name, value in settings.items()
            ),
            ProducerIdsRecord(-1, -1, self.next_producer_id),
        )

    def _topic(self, name: str, topic_id: int) -> list[MetadataRecord]:
        found: list[MetadataRecord] = [TopicRecord(name, topic_id)]
        for key in self.partitions_of(topic_id):
            p = self.partitions[key]
            found.append(
                PartitionRecord(
                    topic_id,
                    key[1],
                    p.replicas,
                    p.isr,
                    p.leader,
                    p.leader_epoch,
                    p.partition_epoch,
                    p.adding,
                    p.removing,
                    p.recovering,
                )
            )
        return found

    @classmethod
    def of_snapshot(
        cls, records: tuple[MetadataRecord, ...], *, end_offset: int, epoch: int
    ) -> "MetadataImage":
        """The image that a snapshot's records add up to."""
        image = cls()
        for record in records:
            _REPLAY[type(record)](image, record)
        image.offset, image.epoch = end_offset, epoch
        return image


def changed(old: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """The partition after a change: its next version."""
    elected = record.leader is not None
    return PartitionImage(
        old.replicas if record.replicas is None else record.replicas,
        old.isr if record.isr is None else record.isr,
        old.leader if record.leader is None else record.leader,
        old.leader_epoch + (elected and record.bumps_leader_epoch),
        old.partition_epoch + 1,
        old.adding if record.adding is None else record.adding,
        old.removing if record.removing is None else record.removing,
        old.recovering if record.recovering is None else record.recovering,
    )


def _nothing(_image: MetadataImage, _record: Any) -> None:
    pass


def _feature(image: MetadataImage, record: FeatureLevelRecord) -> None:
    image.features[record.name] = record.level


def _register(image: MetadataImage, record: RegisterBrokerRecord) -> None:
    image.brokers[record.broker_id] = Registration(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        listeners=record.listeners,
        features=record.features,
        rack=record.rack,
        offset=image.offset if record.offset < 0 else record.offset,
    )


def _registered(one: Registration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        one.broker_id,
        one.broker_epoch,
        one.incarnation_id,
        one.fenced,
        one.listeners,
        one.features,
        one.rack,
        one.in_controlled_shutdown,
        one.offset,
    )


def _unregister(image: MetadataImage, record: UnregisterBrokerRecord) -> None:
    image.brokers.pop(record.broker_id, None)


def _change_registration(image: MetadataImage, record: BrokerRegistrationChangeRecord) -> None:
    known = image.brokers.get(record.broker_id)
    if known is None:
        return
    fenced, leaving = record.fenced, record.in_controlled_shutdown
    image.brokers[record.broker_id] = replace(
        known,
        fenced=known.fenced if fenced is None else fenced,
        in_controlled_shutdown=known.in_controlled_shutdown if leaving is None else leaving,
    )


def _topic(image: MetadataImage, record: TopicRecord) -> None:
    image.topics[record.name] = record.topic_id
    image.names[record.topic_id] = record.name


def _remove_topic(image: MetadataImage, record: RemoveTopicRecord) -> None:
    for key in image.keys.pop(record.topic_id, ()):
        del image.partitions[key]
    name = image.names.pop(record.topic_id, "")
    if image.topics.get(name) == record.topic_id:
        del image.topics[name]
        image.configs.pop((_TOPIC_RESOURCE, name), None)


def _partition(image: MetadataImage, record: PartitionRecord) -> None:
    key = (record.topic_id, record.partition)
    if key not in image.partitions:
        image.keys.setdefault(record.topic_id, []).append(key)
    image.partitions[key] = PartitionImage(
        record.replicas,
        record.isr,
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        record.adding,
        record.removing,
        record.recovering,
    )


def _change_partition(image: MetadataImage, record: PartitionChangeRecord) -> None:
    key = (record.topic_id, record.partition)
    old = image.partitions.get(key)
    # Only where a quorum without one of its rules decided twice is there no such partition.
    if old is not None:
        image.partitions[key] = changed(old, record)


def _config(image: MetadataImage, record: ConfigRecord) -> None:
    resource = (record.resource_type, record.resource_name)
    if record.value is not None:
        image.configs.setdefault(resource, {})[record.name] = record.value
        return
    settings = image.configs.get(resource, {})
    settings.pop(record.name, None)
    if not settings:
        image.configs.pop(resource, None)


def _producer_ids(image: MetadataImage, record: ProducerIdsRecord) -> None:
    image.next_producer_id = record.next_producer_id


_REPLAY: Final[dict[type, Callable[[MetadataImage, Any], None]]] = {
    LeaderChangeMessage: _nothing,
    NoOpRecord: _nothing,
    FeatureLevelRecord: _feature,
    RegisterBrokerRecord: _register,
    UnregisterBrokerRecord: _unregister,
    BrokerRegistrationChangeRecord: _change_registration,
    TopicRecord: _topic,
    RemoveTopicRecord: _remove_topic,
    PartitionRecord: _partition,
    PartitionChangeRecord: _change_partition,
    ConfigRecord: _config,
    ProducerIdsRecord: _producer_ids,
}
