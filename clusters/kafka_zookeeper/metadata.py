"""The metadata of a cluster of the ZooKeeper generation, as its znodes have it.

| znode | what is read of it |
|---|---|
| `/brokers/ids/N` | broker N has a session; the zxid that made it is the broker's epoch |
| `/brokers/topics/T` | the replicas of each partition, and the topic's id (from 2.8 on) |
| `/brokers/topics/T/partitions/P/state` | the leader and the ISR |
| `/controller` | the active controller |
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusters.kafka_port import PartitionView
from clusters.zookeeper.znodes import ZnodeRead, ZnodeReader, children_of, data_of

__all__ = ["Metadata", "controller_of", "metadata_of", "registered_by"]

_IDS: Final = "/brokers/ids"
_TOPICS: Final = "/brokers/topics"
_CONTROLLER: Final = "/controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The content of the znodes, read one soon after the other."""

    controller: int | None
    broker_epochs: Mapping[int, int]
    endpoints: Mapping[int, tuple[str, ...]]
    """The listeners of each broker, as `NAME://HOST:PORT`."""
    partitions: Mapping[str, PartitionView]
    """The partitions by key; one whose state is not there yet has no leader and no ISR."""
    topic_ids: Mapping[str, str]


def metadata_of(reader: ZnodeReader) -> Metadata:
    """Read it; HarnessError if no server answers."""
    ids, topics, controller = reader.read(
        [children_of(_IDS), children_of(_TOPICS), data_of(_CONTROLLER)]
    )
    brokers = sorted(map(int, _children(ids)))
    names = sorted(_children(topics))
    found = reader.read(
        [
            *(data_of(f"{_IDS}/{broker}") for broker in brokers),
            *(data_of(f"{_TOPICS}/{name}") for name in names),
        ]
    )
    broker_nodes, topic_nodes = found[: len(brokers)], found[len(brokers) :]
    stated = {name: _stated(node) for name, node in zip(names, topic_nodes, strict=True)}
    replicas = {
        (name, int(partition)): tuple(ids)
        for name, topic in stated.items()
        for partition, ids in sorted(topic.get("partitions", {}).items())
    }
    states = reader.read(
        [data_of(f"{_TOPICS}/{name}/partitions/{number}/state") for name, number in replicas]
    )
    return Metadata(
        controller=_broker_in(controller),
        broker_epochs={
            broker: node.czxid
            for broker, node in zip(brokers, broker_nodes, strict=True)
            if node is not None
        },
        endpoints={
            broker: tuple(_stated(node).get("endpoints", ()))
            for broker, node in zip(brokers, broker_nodes, strict=True)
        },
        partitions={
            f"{name}-{number}": _partition(_stated(state), replicas[name, number])
            for (name, number), state in zip(replicas, states, strict=True)
        },
        topic_ids={
            str(topic["topic_id"]): name for name, topic in stated.items() if "topic_id" in topic
        },
    )


def controller_of(reader: ZnodeReader) -> int | None:
    """Return the broker that `/controller` names; HarnessError if no server answers."""
    (found,) = reader.read([data_of(_CONTROLLER)])
    return _broker_in(found)


def registered_by(reader: ZnodeReader, broker: int) -> tuple[str, ...] | None:
    """Return the listeners registered under this id, None without; HarnessError: no answer."""
    (found,) = reader.read([data_of(f"{_IDS}/{broker}")])
    return None if found is None else tuple(_stated(found).get("endpoints", ()))


def _children(node: ZnodeRead | None) -> tuple[str, ...]:
    return () if node is None else node.children


def _stated(node: ZnodeRead | None) -> Mapping[str, Any]:
    if node is None or not node.data:
        return {}
    stated: Mapping[str, Any] = json.loads(node.data)
    return stated


def _broker_in(node: ZnodeRead | None) -> int | None:
    broker = int(_stated(node).get("brokerid", -1))
    return broker if broker >= 0 else None


def _partition(state: Mapping[str, Any], replicas: tuple[int, ...]) -> PartitionView:
    leader = int(state.get("leader", -1))
    return PartitionView(
        leader=leader if leader >= 0 else None, isr=tuple(state.get("isr", ())), replicas=replicas
    )
