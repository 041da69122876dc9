"""Reads of metadata through kafka-python: a stock client that is of no other's code.

It learns of the cluster from one broker, and asks for topics whichever it takes for the least
loaded one, as it does for every user of it. Settings are read from the broker that is named to it.
Its requests have no topic ids: that a topic is not there is what its answer shows.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from kafka.client_async import KafkaClient
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest
from kio.schema.errors import ErrorCode

from fencepost.clusters.kafka.admin_requests import error_name
from fencepost.clusters.kafka.describing import Item
from fencepost.clusters.port import NodeName, node_number
from fencepost.clusters.protocol.talking import Address
from fencepost.history.counter import COUNTER_SETTING, counter_of

_SPOKEN: Final = (2, 5)
"""The version of Kafka whose requests it sends; else it asks a broker, or does not begin."""
_METADATA: Final = MetadataRequest[5]
"""The first but one that creates no topic because somebody asks for it."""
_CONFIGS: Final = DescribeConfigsRequest[1]
_TOPIC: Final = 2
logging.getLogger("kafka").setLevel(logging.CRITICAL)  # The history has what ends a read.
_LOST: Final = error_name(ErrorCode.network_exception)
_LATE: Final = error_name(ErrorCode.request_timed_out)


class KafkaPythonReads:
    """A client that starts at `broker`. Both reads return who answered, and what it showed.

    A read without an answer shows, for each topic, the error that ended it. Not thread-safe.
    """

    def __init__(
        self, broker: NodeName, *, brokers: Mapping[NodeName, Address], client_id: str
    ) -> None:
        host, port = brokers[broker]
        self._broker = broker
        self._by_id = {node_number(name): name for name in brokers}
        self._client = KafkaClient(
            bootstrap_servers=f"{host}:{port}", client_id=client_id, api_version=_SPOKEN
        )

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def topics(
        self, names: Sequence[str], *, timeout_s: float
    ) -> tuple[NodeName, tuple[Item, ...]]:
        """Ask for these topics."""
        end_s = time.monotonic() + timeout_s
        number = self._client.least_loaded_node()
        try:
            answer = self._asked(number, _METADATA(list(names), False), end_s)
        except KafkaError as error:
            return self._broker, _silence(names, error)
        # The broker that it starts at has no id before it has answered for the first time.
        node = self._by_id.get(number, self._broker)
        shown = (_listed(code, name, some) for code, name, _, some in answer.topics)
        return node, tuple(chain.from_iterable(shown))

    def configs(
        self, names: Sequence[str], *, timeout_s: float
    ) -> tuple[NodeName, tuple[Item, ...]]:
        """Read the counters of these topics from the broker."""
        if not names:
            return self._broker, ()
        end_s = time.monotonic() + timeout_s
        wanted = [(_TOPIC, name, [COUNTER_SETTING]) for name in names]
        try:
            answer = self._asked(node_number(self._broker), _CONFIGS(wanted, False), end_s)
        except KafkaError as error:
            return self._broker, _silence(names, error)
        return self._broker, tuple(
            _described(code, name, entries) for code, _, _, name, entries in answer.resources
        )

    def _asked(self, number: Any, request: Any, end_s: float) -> Any:
        """Return the answer of a broker. Raises KafkaError."""
        client = self._client
        while number is None or not client.ready(number):
            if time.monotonic() > end_s:
                raise KafkaTimeoutError
            client.poll(timeout_ms=10)
            number = client.least_loaded_node() if number is None else number
        future = client.send(number, request)
        client.poll(future=future, timeout_ms=max(0, 1000 * (end_s - time.monotonic())))
        if not future.is_done:
            client.close(number)
            raise KafkaTimeoutError
        if future.failed():
            raise future.exception
        return future.value


def _listed(code: int, name: str, partitions: Sequence[tuple[Any, ...]]) -> list[Item]:
    if code or not partitions:
        return [{"topic": name, "error": error_name(ErrorCode(code))}]
    return [
        {
            "topic": name,
            "partition": index,
            "error": error_name(ErrorCode(error)),
            "leader": leader,
            "isr": list(isr),
            "replicas": list(replicas),
        }
        for error, index, leader, replicas, isr, *_ in partitions
    ]


def _described(code: int, name: str, entries: Sequence[tuple[Any, ...]]) -> Item:
    if code:
        return {"topic": name, "error": error_name(ErrorCode(code))}
    value = next((value for key, value, *_ in entries if key == COUNTER_SETTING), None)
    return {"topic": name, "error": error_name(ErrorCode.none), "config_value": counter_of(value)}


def _silence(names: Sequence[str], error: KafkaError) -> tuple[Item, ...]:
    told = _LATE if isinstance(error, KafkaTimeoutError) else _LOST
    return tuple({"topic": name, "error": told} for name in names)
