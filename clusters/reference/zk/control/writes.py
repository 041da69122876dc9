"""The writes by which a decision holds: the records of a decision, as operations on znodes.

Records that have to hold together are one multi, a `Multi`: a change of a partition is one of its
own, and whatever changes a topic's assignment goes with its znode. Each is conditional twice: on
the controller epoch, by a check of /controller_epoch, and on the versions that were read.

A unit that fails may have been carried out before (an answer can get lost), or by another hand.
Either way its znodes are read again: a unit whose content is there holds.

Source: Kafka's `KafkaZkClient`, KAFKA-6082; that a topic and its states are made by one multi, and
its assignment and state changed by one, is not Kafka's: it has no half-made topics to repair.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from fencepost.clusters.node_port.zookeeper import (
    Check,
    Create,
    Delete,
    GetData,
    SetData,
    Write,
    ZkError,
    ZkOutcome,
)
from fencepost.clusters.reference.nodes.image import PartitionImage, changed
from fencepost.clusters.reference.nodes.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from fencepost.clusters.reference.zk.control.change import StateChange
from fencepost.clusters.reference.zk.control.context import Context
from fencepost.clusters.reference.zk.znodes import (
    CONFIG_CHANGE_PREFIX,
    CONTROLLER_EPOCH,
    PartitionStateInfo,
    TopicInfo,
    config_path,
    deletion_path,
    encoded_config_change,
    encoded_settings,
    partition_path,
    partitions_path,
    state_path,
    topic_path,
)

_NO_NODE: Final = int(ZkError.NO_NODE)
_TOPIC: Final = 2
_KINDS: Final = {_TOPIC: "topics", 4: "brokers"}
"""The folders below /config by the type of the resource."""
_ALL: Final = "<default>"


@dataclass(frozen=True, slots=True)
class Multi:
    """Writes that are carried out together, and the records that hold with them."""

    operations: tuple[Write, ...]
    """Nothing, if the records concern no znode."""
    records: tuple[MetadataRecord, ...] = ()


def units(context: Context, records: Iterable[MetadataRecord]) -> list[Multi]:
    """Return the units of a decision, in the order of its records."""
    records = [one for one in records if not _is_of_deleted(context, one)]
    moved = {
        one.topic_id
        for one in records
        if isinstance(one, TopicRecord | PartitionRecord)
        or (isinstance(one, PartitionChangeRecord) and _changes_assignment(one))
    }
    named = {one.name: one.topic_id for one in records if isinstance(one, TopicRecord)}
    groups: dict[Hashable, list[MetadataRecord]] = {}
    for one in records:
        groups.setdefault(_group(one, moved, named), []).append(one)
    return [unit(context, _operations(context, group), tuple(group)) for group in groups.values()]


def unit(
    context: Context, operations: Iterable[Write], records: tuple[MetadataRecord, ...] = ()
) -> Multi:
    """Return operations as a unit that holds only while the controller epoch is this one's."""
    found = tuple(operations)
    # Rule controller_epoch_fences_writes.
    if found and context.situation.rules.controller_epoch_fences_writes:
        found = (Check(CONTROLLER_EPOCH, context.epoch_version), *found)
    return Multi(found, records)


def is_deposed(one: Multi, outcomes: tuple[ZkOutcome, ...]) -> bool:
    """Return whether a unit failed because there is a newer controller epoch."""
    first = one.operations[0]
    return isinstance(first, Check) and first.path == CONTROLLER_EPOCH and outcomes[0].error != 0


def reads_of(one: Multi) -> list[GetData]:
    """Return the reads that show whether a unit holds."""
    return [GetData(operation.path) for operation in _checkable(one)]


def holds(one: Multi, outcomes: list[ZkOutcome]) -> bool:
    """Return whether a unit's znodes, as `reads_of` found them, are as it wanted them."""
    return all(
        found.error == _NO_NODE
        if isinstance(operation, Delete)
        else not found.error and found.data == operation.data
        for operation, found in zip(_checkable(one), outcomes, strict=True)
    )


def _checkable(one: Multi) -> list[Create | SetData | Delete]:
    return [
        operation
        for operation in one.operations
        if not isinstance(operation, Check)
        and not (isinstance(operation, Create) and operation.sequential)
    ]


def applied(context: Context, one: Multi, versions: dict[str, int]) -> list[StateChange]:
    """Take a unit that holds, with its znodes at these versions; what it changes."""
    changes = [change for record in one.records for change in _applied(context, record, versions)]
    _assigned(context, one.records, versions)
    return changes


def _applied(
    context: Context, record: MetadataRecord, versions: dict[str, int]
) -> Iterable[StateChange]:
    old: PartitionImage | None = None
    if isinstance(record, PartitionChangeRecord | PartitionRecord):
        key = (record.topic_id, record.partition)
        old = context.image.partitions.get(key)
        context.apply(record)
        context.controller_epochs[key] = context.epoch
        path = state_path(context.image.names[record.topic_id], record.partition)
        new = _at_version(context.image.partitions[key], versions.get(path))
        context.image.partitions[key] = new
        yield StateChange(key, old, new)
        return
    if isinstance(record, RemoveTopicRecord):
        for key in context.image.partitions_of(record.topic_id):
            context.controller_epochs.pop(key, None)
        name = context.image.names[record.topic_id]
        context.removed.add(record.topic_id)
        context.deleting.pop(name, None)
        context.settings_paths.discard(_path_of(_TOPIC, name))
    elif isinstance(record, ConfigRecord):
        context.settings_paths.add(_path_of(record.resource_type, record.resource_name))
    elif isinstance(record, TopicRecord):
        context.settings_paths.add(_path_of(_TOPIC, record.name))
    context.apply(record)


def _at_version(one: PartitionImage, version: int | None) -> PartitionImage:
    """Return the partition as of its znode's version, which others may have counted up."""
    return one if version is None else replace(one, partition_epoch=version)


def _is_of_deleted(context: Context, record: MetadataRecord) -> bool:
    """Return whether a record would change a partition that is being deleted."""
    if not isinstance(record, PartitionRecord | PartitionChangeRecord):
        return False
    return context.image.names.get(record.topic_id, "") in context.deleting


def _group(record: MetadataRecord, moved: set[int], named: dict[str, int]) -> Hashable:
    """Return the group of a record: those of a group hold together."""
    if isinstance(record, ConfigRecord):
        topic_id = named.get(record.resource_name) if record.resource_type == _TOPIC else None
        resource = (record.resource_type, record.resource_name)
        return resource if topic_id is None else topic_id
    if isinstance(record, PartitionChangeRecord) and record.topic_id not in moved:
        return record.topic_id, record.partition
    if isinstance(
        record, TopicRecord | RemoveTopicRecord | PartitionRecord | PartitionChangeRecord
    ):
        return record.topic_id
    return None


def _operations(context: Context, records: list[MetadataRecord]) -> Iterable[Write]:
    yield from _settings_operations(context, records)
    yield from _topic_operations(context, records)
    for one in records:
        if isinstance(one, PartitionChangeRecord):
            yield _changed_state(context, one)
        elif isinstance(one, PartitionRecord):
            yield from _new_state(context, one, records)
        elif isinstance(one, RemoveTopicRecord):
            yield from _removed(context, context.image.names[one.topic_id])


def _changed_state(context: Context, record: PartitionChangeRecord) -> SetData:
    key = (record.topic_id, record.partition)
    old = context.image.partitions[key]
    new = changed(old, record)
    # Rule state_written_by_version.
    version = old.partition_epoch if context.situation.rules.state_written_by_version else -1
    path = state_path(context.image.names[record.topic_id], record.partition)
    return SetData(path, _state(context, new), version)


def _new_state(
    context: Context, record: PartitionRecord, records: list[MetadataRecord]
) -> Iterable[Create]:
    named = {one.topic_id: one.name for one in records if isinstance(one, TopicRecord)}
    name = named.get(record.topic_id) or context.image.names[record.topic_id]
    yield Create(partition_path(name, record.partition), b"")
    yield Create(state_path(name, record.partition), _state(context, record))


def _state(context: Context, one: PartitionRecord | PartitionImage) -> bytes:
    return PartitionStateInfo(
        context.epoch, one.leader, one.leader_epoch, one.isr, one.recovering
    ).encoded()


def _removed(context: Context, name: str) -> Iterable[Delete]:
    partitions = context.image.partitions_of(context.image.topics[name])
    for _, partition in partitions:
        yield Delete(state_path(name, partition))
        yield Delete(partition_path(name, partition))
    if partitions:
        yield Delete(partitions_path(name))
    yield Delete(topic_path(name))
    settings = _path_of(_TOPIC, name)
    if settings in context.settings_paths:
        yield Delete(settings)
    yield Delete(deletion_path(name))


def _path_of(resource_type: int, name: str) -> str:
    """Return the path of the settings of a topic or of a broker ("": of all brokers)."""
    return config_path(_KINDS[resource_type], name or _ALL)


def _settings_operations(context: Context, records: list[MetadataRecord]) -> Iterable[Write]:
    """Yield what writes the settings of the resources that records name or make."""
    found: dict[tuple[int, str], dict[str, str]] = {}
    made = {one.name for one in records if isinstance(one, TopicRecord)}
    for one in records:
        if isinstance(one, TopicRecord):
            found.setdefault((_TOPIC, one.name), {})
        elif isinstance(one, ConfigRecord):
            resource = (one.resource_type, one.resource_name)
            before = context.situation.image.configs.get(resource, {})
            after = found.setdefault(resource, dict(before))
            if one.value is None:
                after.pop(one.name, None)
            else:
                after[one.name] = one.value
    for (kind, name), settings in found.items():
        path = _path_of(kind, name)
        data = encoded_settings(settings)
        is_there = path in context.settings_paths
        yield SetData(path, data) if is_there else Create(path, data)
        if kind != _TOPIC or name not in made:  # Brokers read those of a new topic.
            change = encoded_config_change(_KINDS[kind], name or _ALL)
            yield Create(CONFIG_CHANGE_PREFIX, change, sequential=True)


def _changes_assignment(record: PartitionChangeRecord) -> bool:
    """Return whether a change of a partition is one of its replicas."""
    return any(one is not None for one in (record.replicas, record.adding, record.removing))


def _topic_operations(context: Context, records: list[MetadataRecord]) -> Iterable[Write]:
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


def _assigned(
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
    """Return a topic's name and its znode's content before and after; None: no such znode."""
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
