"""The replicas of a partition, and whether it is being moved, as one broker has it.

Whether a reassignment is under way only the controller knows: a broker passes that question on.
Which replicas there are it answers itself. The controller is asked first, so that replicas that the
broker shows afterwards with nothing under way are those in which a reassignment ended. A controller
that does not know yet that it was deposed may leave a reassignment out that its successor began.
"""

from dataclasses import dataclass
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta

from clusters.kafka.connection import NoAnswerError, NodeConnection
from clusters.kafka.describing import ask_topics

__all__ = ["Placement", "ask_placement"]


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
) -> Placement | None:
    """The placement by a broker; None if it, or the controller behind it, did not say."""
    try:
        moving = _is_moving(connection, topic, partition, timeout_s=timeout_s)
        items = ask_topics(connection, [topic], timeout_s=timeout_s)
    except NoAnswerError:
        return None
    shown = [item["replicas"] for item in items if item.get("partition") == partition]
    if moving is None or not shown:
        return None
    return Placement(replicas=tuple(shown[0]), is_moving=moving)


def _is_moving(
    connection: NodeConnection, topic: str, partition: int, *, timeout_s: float
) -> bool | None:
    asked = ListPartitionReassignmentsTopics(
        name=TopicName(topic), partition_indexes=(i32(partition),)
    )
    request = ListPartitionReassignmentsRequest(
        timeout=i32Timedelta.parse(timedelta(milliseconds=int(timeout_s * 1000))), topics=(asked,)
    )
    response = connection.ask(request, ListPartitionReassignmentsResponse, timeout_s=timeout_s)
    if response.error_code is not ErrorCode.none:
        return None
    return any(
        str(one.name) == topic and part.partition_index == partition
        for one in response.topics
        for part in one.partitions
    )
