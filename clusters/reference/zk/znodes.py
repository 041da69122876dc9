"""The znodes of a cluster of this generation: their paths, and their content both ways.

The content is Kafka's own (`zk/ZkData.scala`), so that what reads Kafka's znodes reads these; but
for `/brokers/hosts/H`, which is of the draft on broker ids by host name (H02).
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencepost.clusters.reference.nodes.records import Listener

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
"""A broker without an id sets its data, and takes the version that this gives it (H04)."""
HOSTS: Final = "/brokers/hosts"
TOPICS: Final = "/brokers/topics"
DELETE_TOPICS: Final = "/admin/delete_topics"
ISR_CHANGES: Final = "/isr_change_notification"
ISR_CHANGE_PREFIX: Final = f"{ISR_CHANGES}/isr_change_"
"""Sequential znodes below it tell the controller which states their leaders have written."""
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = f"{CONFIG_CHANGES}/config_change_"
"""Sequential znodes below it tell brokers whose settings are new."""
PRODUCER_IDS: Final = "/latest_producer_id_block"
PERMANENT: Final = (
    "/brokers",
    BROKER_IDS,
    BROKER_SEQUENCE,
    HOSTS,
    TOPICS,
    "/admin",
    DELETE_TOPICS,
    ISR_CHANGES,
    "/config",
    CONFIG_CHANGES,
    "/config/topics",
    "/config/brokers",
    PRODUCER_IDS,
)
"""The znodes that the first broker makes, parents first."""

_NO_PORT: Final = -1


def broker_path(broker_id: int) -> str:
    """Return the path of a broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def host_path(host: str) -> str:
    """Return the path of the id that a host was given last."""
    return f"{HOSTS}/{host}"


def topic_path(topic: str) -> str:
    """Return the path of a topic, whose content is its assignment."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Return the path above a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """Return the path above a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    """Return the path of a partition's leader and ISR."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def deletion_path(topic: str) -> str:
    """Return the path that demands a topic's deletion."""
    return f"{DELETE_TOPICS}/{topic}"


def config_path(kind: str, name: str) -> str:
    """Return the path of the settings of a topic ("topics") or a broker ("brokers")."""
    return f"/config/{kind}/{name}"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A registration. Version 5 says: ready for the new behaviour; 4: legacy (Z12)."""

    broker_id: int
    listeners: tuple[Listener, ...]
    rack: str | None
    version: int
    host_name: str = ""
    """The host that its id is kept under, where that is not the host of its first listener."""

    @property
    def host(self) -> str:
        """The broker's host."""
        return self.host_name or (self.listeners[0][1] if self.listeners else "")

    def encoded(self) -> bytes:
        """Return the content of its znode."""
        first = self.listeners[0] if self.listeners else ("", "", _NO_PORT, 0)
        names = [name for name, *_ in self.listeners]
        return _json(
            {
                "version": self.version,
                "host": self.host,
                "port": first[2],
                "jmx_port": -1,
                "timestamp": "0",
                "endpoints": [f"{name}://{host}:{port}" for name, host, port, _ in self.listeners],
                "listener_security_protocol_map": dict.fromkeys(names, "PLAINTEXT"),
                **({} if self.rack is None else {"rack": self.rack}),
            }
        )

    @classmethod
    def decoded(cls, broker_id: int, data: bytes) -> "BrokerInfo":
        """Read the content of a registration."""
        content = json.loads(data)
        listeners = tuple(_listener(one) for one in content.get("endpoints", ()))
        host = content.get("host") or ""
        return cls(
            broker_id,
            listeners,
            content.get("rack"),
            int(content["version"]),
            "" if listeners and listeners[0][1] == host else host,
        )


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic: its id, and by partition its replicas, those that come and those that go."""

    topic_id: int
    replicas: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]]
    removing: Mapping[int, tuple[int, ...]]

    def encoded(self) -> bytes:
        """Return the content of its znode (version 3)."""
        return _json(
            {
                "version": 3,
                "topic_id": _encoded_id(self.topic_id),
                "partitions": _encoded_ids(self.replicas),
                "adding_replicas": _encoded_ids(self.adding),
                "removing_replicas": _encoded_ids(self.removing),
            }
        )

    @classmethod
    def decoded(cls, data: bytes) -> "TopicInfo":
        """Read the content of a topic's znode of version 3."""
        content = json.loads(data)
        return cls(
            _decoded_id(content["topic_id"]),
            _decoded_ids(content["partitions"]),
            _decoded_ids(content.get("adding_replicas", {})),
            _decoded_ids(content.get("removing_replicas", {})),
        )


@dataclass(frozen=True, slots=True)
class PartitionStateInfo:
    """A partition's state. The version of its znode is the partition epoch."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recovering: bool = False

    def encoded(self) -> bytes:
        """Return the content of its znode."""
        return _json(
            {
                "controller_epoch": self.controller_epoch,
                "leader": self.leader,
                "version": 1,
                "leader_epoch": self.leader_epoch,
                "isr": list(self.isr),
                **({"leader_recovery_state": 1} if self.recovering else {}),
            }
        )

    @classmethod
    def decoded(cls, data: bytes) -> "PartitionStateInfo":
        """Read the content of a state."""
        content = json.loads(data)
        return cls(
            int(content["controller_epoch"]),
            int(content["leader"]),
            int(content["leader_epoch"]),
            tuple(content["isr"]),
            bool(content.get("leader_recovery_state", 0)),
        )


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """The block of producer ids that was given away last; `end` is its last id."""

    broker_id: int
    start: int
    end: int

    def encoded(self) -> bytes:
        """Return the content of its znode."""
        block = {"block_start": str(self.start), "block_end": str(self.end)}
        return _json({"version": 1, "broker": self.broker_id, **block})

    @classmethod
    def decoded(cls, data: bytes) -> "ProducerIdBlock":
        """Read the content of its znode, which is empty at first."""
        if not data:
            return cls(-1, -1, -1)
        content = json.loads(data)
        return cls(int(content["broker"]), int(content["block_start"]), int(content["block_end"]))


def encoded_host(broker_id: int) -> bytes:
    """Return the content of a host's znode: the id that it was given last (H02)."""
    return _json({"version": 0, "broker.id": broker_id})


def decoded_host(data: bytes) -> int:
    """Read the broker id of a host's znode, of this version or a later one, which has more keys."""
    return int(json.loads(data)["broker.id"])


def encoded_settings(settings: Mapping[str, str]) -> bytes:
    """Return the content of a znode of settings."""
    return _json({"version": 1, "config": dict(sorted(settings.items()))})


def decoded_settings(data: bytes) -> dict[str, str]:
    """Read the content of a znode of settings."""
    return {name: str(value) for name, value in json.loads(data)["config"].items()}


def encoded_config_change(kind: str, name: str) -> bytes:
    """Return the content of a notification that settings are new, e.g. of ("topics", "t")."""
    return _json({"version": 2, "entity_path": f"{kind}/{name}"})


def decoded_config_change(data: bytes) -> tuple[str, str]:
    """Read whose settings are new."""
    kind, _, name = json.loads(data)["entity_path"].partition("/")
    return kind, name


def encoded_isr_change(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Return the content of a notification that leaders have written these states."""
    found = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return _json({"version": 1, "partitions": found})


def decoded_isr_change(data: bytes) -> tuple[tuple[str, int], ...]:
    """Read which states leaders have written."""
    found = json.loads(data)["partitions"]
    return tuple((one["topic"], int(one["partition"])) for one in found)


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _listener(text: str) -> Listener:
    name, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return (name, host, int(port), 0)


def _encoded_id(topic_id: int) -> str:
    return urlsafe_b64encode(topic_id.to_bytes(16, "big")).decode().rstrip("=")


def _decoded_id(text: str) -> int:
    return int.from_bytes(urlsafe_b64decode(text + "=="), "big")


def _encoded_ids(by_partition: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
    return {str(partition): list(ids) for partition, ids in sorted(by_partition.items())}


def _decoded_ids(content: Mapping[str, list[int]]) -> dict[int, tuple[int, ...]]:
    return {int(partition): tuple(ids) for partition, ids in content.items()}
