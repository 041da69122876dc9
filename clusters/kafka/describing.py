"""Reads of metadata, each of one broker and on the record: what it showed, when, and who asked.

A read that got no answer is on the record, too, under the error that ended it: it claims nothing.

Only the controller knows of a reassignment that is under way: a broker passes that question on.
Which replicas there are it answers itself. The controller is asked first, so that replicas that the
broker shows afterwards with nothing under way are those in which a reassignment ended. A controller
that does not know yet that it was deposed may leave a reassignment out that its successor began.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i32Timedelta

from fencepost.clusters.kafka.admin_requests import error_name, topic_id_text
from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions
from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.history.counter import COUNTER_SETTING, counter_of
from fencepost.history.journal import ReadJournal

_TOPIC: Final = i8(2)
"""The resource type."""
_GIVEN: Final = 1
"""The source of a setting that the topic itself was given."""
Item = dict[str, Any]
"""Columns of `history.request_schema.DESCRIBES` that one partition or topic has to itself."""


class DescribeRecorder:
    """Asks for one process, and records. For several threads, as the journal is."""

    def __init__(self, journal: ReadJournal, *, process: int) -> None:
        self._journal = journal
        self._process = process

    def topics(
        self, node: NodeName, connection: NodeConnection, names: Sequence[str], *, timeout_s: float
    ) -> tuple[Item, ...]:
        """Read the metadata of these topics from a node; what it showed, by now recorded."""
        number, call_ns = self._journal.begin()
        items = _answered(lambda: ask_topics(connection, names, timeout_s=timeout_s), names)
        self.add(node, number, call_ns=call_ns, items=items)
        return items

    def configs(
        self, node: NodeName, connection: NodeConnection, names: Sequence[str], *, timeout_s: float
    ) -> tuple[Item, ...]:
        """Read the counters of these topics from a node; what it showed, by now recorded."""
        number, call_ns = self._journal.begin()
        items = _answered(lambda: _ask_configs(connection, names, timeout_s=timeout_s), names)
        self.add(node, number, call_ns=call_ns, items=items)
        return items

    def add(self, node: NodeName, number: int, *, call_ns: int, items: Sequence[Item]) -> None:
        """Record a read that the caller did itself, and that has just returned."""
        shared = {"process": self._process, "node": node}
        self._journal.end(number, call_ns=call_ns, columns=shared, items=items)


def ask_topics(
    connection: NodeConnection,
    names: Sequence[str],
    *,
    timeout_s: float,
    api_versions: ApiVersions = NEWEST,
) -> tuple[Item, ...]:
    """The metadata of these topics as a node shows it; NoAnswerError."""
    request = api_versions.metadata_request(names)
    return tuple(
        metadata_items(connection.ask(request, api_versions.metadata, timeout_s=timeout_s))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a broker says of the cluster as a whole."""

    topics: tuple[str, ...]
    controller: Address | None
    """The address for clients of the broker that it calls the controller; in KRaft, which has
    controllers of its own, that is some broker. None: it knows none."""


def ask_overview(
    connection: NodeConnection, *, timeout_s: float, api_versions: ApiVersions = NEWEST
) -> Overview:
    """The topics and the controller by a node; NoAnswerError."""
    response = connection.ask(
        api_versions.metadata_request(None), api_versions.metadata, timeout_s=timeout_s
    )
    controllers = (one for one in response.brokers if one.node_id == response.controller_id)
    return Overview(
        topics=tuple(str(topic.name) for topic in response.topics),
        controller=next(((str(one.host), int(one.port)) for one in controllers), None),
    )


def metadata_items(response: MetadataResponse) -> Iterator[Item]:
    """A row a partition; one without a partition for a topic that the broker does not know."""
    for topic in response.topics:
        if topic.error_code is ErrorCode.none and topic.partitions:
            yield from _partition_items(topic)
        else:
            yield {"topic": str(topic.name), "error": error_name(topic.error_code)}


def config_items(response: DescribeConfigsResponse) -> Iterator[Item]:
    """A row a topic; `config_value` is the counter that its settings carry, if they do."""
    for result in response.results:
        item: Item = {"topic": result.resource_name, "error": error_name(result.error_code)}
        for config in result.configs:
            if config.name == COUNTER_SETTING:
                item["config_value"] = counter_of(config.value)
        yield item


def _partition_items(topic: MetadataResponseTopic) -> Iterator[Item]:
    topic_id = getattr(topic, "topic_id", None)  # releases before 2.8 have none
    for partition in topic.partitions:
        yield {
            "topic": str(topic.name),
            "topic_id": None if topic_id is None else topic_id_text(topic_id),
            "partition": int(partition.partition_index),
            "error": error_name(partition.error_code),
            "leader": int(partition.leader_id),
            "leader_epoch": getattr(partition, "leader_epoch", None),  # from 2.1 on
            "isr": [int(broker_id) for broker_id in partition.isr_nodes],
            "replicas": [int(broker_id) for broker_id in partition.replica_nodes],
        }


def ask_settings(
    connection: NodeConnection, names: Sequence[str], *, timeout_s: float
) -> Mapping[str, Mapping[str, str | None]]:
    """The settings that these topics were given, by a node, by topic and name; NoAnswerError.

    A topic that the node does not know is left out.
    """
    response = _described(connection, names, keys=None, timeout_s=timeout_s)
    return {
        result.resource_name: {
            config.name: config.value for config in result.configs if config.config_source == _GIVEN
        }
        for result in response.results
        if result.error_code is ErrorCode.none
    }


def _ask_configs(
    connection: NodeConnection, names: Sequence[str], *, timeout_s: float
) -> tuple[Item, ...]:
    described = _described(connection, names, keys=(COUNTER_SETTING,), timeout_s=timeout_s)
    return tuple(config_items(described))


def _described(
    connection: NodeConnection,
    names: Sequence[str],
    *,
    keys: tuple[str, ...] | None,
    timeout_s: float,
) -> DescribeConfigsResponse:
    resources = tuple(
        DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=keys)
        for name in names
    )
    request = DescribeConfigsRequest(resources=resources)
    return connection.ask(request, DescribeConfigsResponse, timeout_s=timeout_s)


def _answered(ask: Callable[[], tuple[Item, ...]], names: Iterable[str]) -> tuple[Item, ...]:
    try:
        return ask()
    except NoAnswerError as silence:
        return tuple({"topic": name, "error": silence.reason} for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The replicas of a partition, by broker id."""

    replicas: tuple[int, ...]
    """The preferred leader first. While it is moved, those that leave are among them."""
    is_moving: bool

    def is_still_at(self, replicas: tuple[int, ...] | None) -> bool:
        """Return whether nothing is under way and these are the replicas, in order; None: any."""
        return not self.is_moving and replicas in (None, self.replicas)


def ask_placement(
    connection: NodeConnection, topic: str, partition: int, *, timeout_s: float
) -> tuple[Placement | None, str | None]:
    """The placement by a broker; None if it, or the controller behind it, did not say, and why."""
    try:
        asked = _reassignments(connection, topic, partition, timeout_s=timeout_s)
        if asked.error_code is not ErrorCode.none:
            return None, error_name(asked.error_code)
        items = ask_topics(connection, [topic], timeout_s=timeout_s)
    except NoAnswerError as silence:
        return None, silence.reason
    shown = [item for item in items if item["topic"] == topic]
    replicas = [item["replicas"] for item in shown if item.get("partition") == partition]
    if not replicas:
        return None, next((item["error"] for item in shown), None)
    is_moving = any(
        str(one.name) == topic and part.partition_index == partition
        for one in asked.topics
        for part in one.partitions
    )
    return Placement(replicas=tuple(replicas[0]), is_moving=is_moving), None


def _reassignments(
    connection: NodeConnection, topic: str, partition: int, *, timeout_s: float
) -> ListPartitionReassignmentsResponse:
    asked = ListPartitionReassignmentsTopics(
        name=TopicName(topic), partition_indexes=(i32(partition),)
    )
    request = ListPartitionReassignmentsRequest(
        timeout=i32Timedelta.parse(timedelta(milliseconds=int(timeout_s * 1000))), topics=(asked,)
    )
    return connection.ask(request, ListPartitionReassignmentsResponse, timeout_s=timeout_s)
