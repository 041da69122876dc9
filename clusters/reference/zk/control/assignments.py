"""The znodes of topics: the replicas of their partitions, those that come and those that go."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from clusters.node_port.zookeeper import Create, SetData, Write
from clusters.reference.nodes.image import changed
from clusters.reference.nodes.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from clusters.reference.zk.control.context import Context
from clusters.reference.zk.znodes import TopicInfo, partitions_path, topic_path

__all__ = ["assigned", "changes_assignment", "topic_operations"]


def changes_assignment(record: PartitionChangeRecord) -> bool:
    """Return whether a change of a partition is one of its replicas."""
    return any(one is not None for one in (record.replicas, record.adding, record.removing))


def topic_operations(context: Context, records: list[MetadataRecord]) -> Iterable[Write]:
    """Yield what makes or changes the znode of the topic that all these records are of."""
    name, before, after = _folded(context, records)
    if after is None:
        return
    if before is None:
        yield Create(topic_path(name), after.encoded())
    elif after != before:
        yield SetData(topic_path(name), after.encoded(), context.assignments_versions[name])
    has_partitions = bool(context.image.keys.get(after.topic_id))
    if not has_partitions and any(isinstance(one, PartitionRecord) for one in records):
        yield Create(partitions_path(name), b"")


def assigned(
    context: Context, records: tuple[MetadataRecord, ...], versions: dict[str, int]
) -> None:
    """Take the content of a topic's znode after these records, which were written."""
    name, before, after = _folded(context, list(records))
    for one in records:
        if isinstance(one, RemoveTopicRecord):
            gone = [
                name for name, info in context.assignments.items() if info.topic_id == one.topic_id
            ]
            for name in gone:
                del context.assignments[name], context.assignments_versions[name]
    if after is not None and after != before:
        context.assignments[name] = after
        context.assignments_versions[name] = versions[topic_path(name)]


def _folded(
    context: Context, records: list[MetadataRecord]
) -> tuple[str, TopicInfo | None, TopicInfo | None]:
    """Return a topic's name and its znode's content before and after; None: there is none."""
    name, before, after = "", None, None
    for one in records:
        if isinstance(one, TopicRecord):
            name, after = one.name, TopicInfo(one.topic_id, {}, {}, {})
        elif isinstance(one, PartitionRecord | PartitionChangeRecord):
            if after is None:
                name = context.image.names[one.topic_id]
                before = after = context.assignments[name]
            after = _with(context, after, one)
    return name, before, after


def _with(
    context: Context, info: TopicInfo, record: PartitionRecord | PartitionChangeRecord
) -> TopicInfo:
    """Return the content with the replicas of one partition as a record says."""
    key = (record.topic_id, record.partition)
    one = (
        record
        if isinstance(record, PartitionRecord)
        else changed(context.image.partitions[key], record)
    )
    return replace(
        info,
        replicas={**info.replicas, key[1]: one.replicas},
        adding=_set(info.adding, key[1], one.adding),
        removing=_set(info.removing, key[1], one.removing),
    )


def _set(
    by_partition: Mapping[int, tuple[int, ...]], partition: int, replicas: tuple[int, ...]
) -> dict[int, tuple[int, ...]]:
    rest = {one: ids for one, ids in by_partition.items() if one != partition}
    return {**rest, partition: replicas} if replicas else rest
