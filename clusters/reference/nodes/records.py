"""The records of the metadata log (KIP-631), with Kafka's names and fields.

State changes by replaying these and by nothing else. They are values: never changed once made.
Ids of topics and of incarnations are integers of 128 bits, directories have none.
"""

from dataclasses import dataclass

Listener = tuple[str, str, int, int]
"""(name, host, port, security protocol)."""


@dataclass(slots=True)
class LeaderChangeMessage:
    """A control record: the first one of a leader's epoch."""

    leader_id: int
    voters: tuple[int, ...]


@dataclass(slots=True)
class FeatureLevelRecord:
    """A feature has this level from here on; "metadata.version" is one of them."""

    name: str
    level: int


@dataclass(slots=True)
class RegisterBrokerRecord:
    """A broker was registered; its epoch is decided by the offset of the log (K02)."""

    broker_id: int
    broker_epoch: int
    incarnation_id: int
    fenced: bool
    listeners: tuple[Listener, ...]
    features: tuple[tuple[str, int, int], ...]
    """(name, lowest level, highest level) that the broker supports."""
    rack: str | None = None
    in_controlled_shutdown: bool = False
    offset: int = -1
    """The offset of the registration, where a snapshot repeats it; -1: this record's own."""


@dataclass(slots=True)
class UnregisterBrokerRecord:
    """A broker is gone for good."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class BrokerRegistrationChangeRecord:
    """A registration changed; None: that part did not."""

    broker_id: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None


@dataclass(slots=True)
class TopicRecord:
    """A topic was created; its partitions follow."""

    name: str
    topic_id: int


@dataclass(slots=True)
class RemoveTopicRecord:
    """A topic is gone, with its partitions and its configuration."""

    topic_id: int


@dataclass(slots=True)
class PartitionRecord:
    """A partition as a whole."""

    topic_id: int
    partition: int
    replicas: tuple[int, ...]
    """The preferred leader first."""
    isr: tuple[int, ...]
    leader: int
    """The leader; -1: none."""
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    """Kafka's leader recovery state: led since an unclean election, no ISR agreed since."""


@dataclass(slots=True)
class PartitionChangeRecord:
    """A partition changed; None: that part did not. Each adds one to the partition epoch."""

    topic_id: int
    partition: int
    isr: tuple[int, ...] | None = None
    leader: int | None = None
    """A leader, also the same one again, begins a new leader epoch; -1: none leads."""
    bumps_leader_epoch: bool = True
    """False only without the rule `leader_epoch_bumped`."""
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovering: bool | None = None


@dataclass(slots=True)
class ConfigRecord:
    """A setting of a topic or a broker; None: its default again."""

    resource_type: int
    """2: a topic; 4: a broker, "" for all of them."""
    resource_name: str
    name: str
    value: str | None


@dataclass(slots=True)
class ProducerIdsRecord:
    """The producer ids below this one are given away."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


@dataclass(slots=True)
class NoOpRecord:
    """Nothing; the high watermark moves on."""


MetadataRecord = (
    LeaderChangeMessage
    | FeatureLevelRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | ProducerIdsRecord
    | NoOpRecord
)
