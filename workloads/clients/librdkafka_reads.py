"""Reads of metadata through librdkafka: a stock client, which chooses the broker that it asks.

It learns of the cluster from one broker. It lists topics at any broker to which it is connected
by then, as it does for every user of it, and its answer says at which. Settings are read from the
broker that is named to it. A list has no topic ids: that a topic is missing from it is what it
shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # they are there
    AdminClient,
    ConfigResource,
    ResourceType,
    TopicMetadata,
)
from kio.schema.errors import ErrorCode

from fencepost.clusters.kafka.admin_requests import error_name
from fencepost.clusters.kafka.describing import Item
from fencepost.clusters.port import NodeName, node_number
from fencepost.clusters.protocol.talking import Address
from fencepost.history.counter import COUNTER_SETTING, counter_of

_UNKNOWN: Final = error_name(ErrorCode.unknown_topic_or_partition)
_TIMED_OUT: Final = KafkaError._TIMED_OUT  # noqa: SLF001  # the constant's name
_SLACK_S: Final = 1.0
"""A future that librdkafka has not ended by then never ends."""


class LibrdkafkaReads:
    """A client that starts at `broker`. Both reads return who answered, and what it showed.

    A read without an answer shows, for each topic, the error that ended it. Not thread-safe.
    """

    def __init__(
        self, broker: NodeName, *, brokers: Mapping[NodeName, Address], client_id: str
    ) -> None:
        host, port = brokers[broker]
        self._broker = broker
        self._by_id = {node_number(name): name for name in brokers}
        self._admin = AdminClient(
            {"bootstrap.servers": f"{host}:{port}", "client.id": client_id, "log_level": 0}
        )

    def close(self) -> None:
        """Nothing: its connections end with it."""

    def topics(
        self, names: Sequence[str], *, timeout_s: float
    ) -> tuple[NodeName, tuple[Item, ...]]:
        """List all topics; what the list says of these."""
        try:
            shown = self._admin.list_topics(timeout=timeout_s)
        except KafkaException as ended:
            return self._broker, _silence(names, ended.args[0])
        # It has not learnt the id of its first broker when it asks it for the first time.
        node = self._by_id.get(shown.orig_broker_id, self._broker)
        return node, tuple(one for name in names for one in _listed(name, shown.topics.get(name)))

    def configs(
        self, names: Sequence[str], *, timeout_s: float
    ) -> tuple[NodeName, tuple[Item, ...]]:
        """Read the counters of these topics from the broker."""
        if not names:
            return self._broker, ()
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        answers = self._admin.describe_configs(
            asked, request_timeout=timeout_s, broker=node_number(self._broker)
        )
        return self._broker, tuple(
            _described(name, answers[one], within_s=timeout_s + _SLACK_S)
            for name, one in zip(names, asked, strict=True)
        )


def _listed(name: str, topic: TopicMetadata | None) -> Iterator[Item]:
    if topic is None:
        yield {"topic": name, "error": _UNKNOWN}
    elif topic.error is not None or not topic.partitions:
        yield {"topic": name, "error": _name_of(topic.error)}
    else:
        for one in topic.partitions.values():
            yield {
                "topic": name,
                "partition": one.id,
                "error": _name_of(one.error),
                "leader": one.leader,
                "isr": list(one.isrs),
                "replicas": list(one.replicas),
            }


def _described(name: str, answer: Any, *, within_s: float) -> Item:
    try:
        entries = answer.result(within_s)
    except KafkaException as ended:
        return {"topic": name, "error": _name_of(ended.args[0])}
    value = entries[COUNTER_SETTING].value if COUNTER_SETTING in entries else None
    return {"topic": name, "error": _name_of(None), "config_value": counter_of(value)}


def _silence(names: Sequence[str], error: KafkaError) -> tuple[Item, ...]:
    return tuple({"topic": name, "error": _name_of(error)} for name in names)


def _name_of(error: KafkaError | None) -> str:
    """Return Kafka's name of an error; of one of librdkafka's own, that of a lost answer."""
    if error is None:
        return error_name(ErrorCode.none)
    if error.code() >= 0:
        return error_name(ErrorCode(error.code()))
    timed_out = error.code() == _TIMED_OUT
    return error_name(ErrorCode.request_timed_out if timed_out else ErrorCode.network_exception)
