"""The columns of a message of the reference cluster, in Kafka's words: API, columns and items.

As `nemesis.wire.decoding` reads frames of Kafka's protocol, this module reads the messages that
nodes of a simulated cluster share: for rules that ask for a field, and for the tape. Metadata
offsets are end offsets in these messages; on the tape they are those of the last record, as Kafka's
are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from clusters.node_port.storage import PartitionKey
from clusters.reference.codec.identifiers import text_of
from clusters.reference.nodes.errors import ERROR_NAMES
from clusters.reference.nodes.levels import LEVEL_VISIBILITY
from clusters.reference.nodes.messages import client, control, data, quorum
from clusters.reference.nodes.states import BrokerState
from clusters.simulation.host import Channel
from nemesis.simulated.parties import asked_as
from nemesis.simulated.zk_columns import ZK_APIS, ZK_READERS
from nemesis.wire.apis import API_KEYS, FETCH, TAPED
from nemesis.wire.decoding.columns import METADATA_TOPIC, METADATA_TOPIC_ID, Parts
from nemesis.wire.decoding.entities import Decoded
from nemesis.wire.frame import Frame, TopicNames
from nemesis.wire.frames import Header
from nemesis.wire.rules import Direction
from nemesis.wire.rules import Link as WireLink

__all__ = ["APIS", "TAPED_KINDS", "ReadsTypes", "direction_of", "frame_of", "kinds_of"]

_NO_SESSION: Final = -1
_EPOCHS_FROM: Final = 15
"""Fetch: the follower's broker epoch (KIP-903)."""
_METADATA: Final = {"topic": METADATA_TOPIC, "topic_id": METADATA_TOPIC_ID, "partition": 0}

APIS: Final[Mapping[int, tuple[str, int]]] = {
    quorum.VoteRequest.kind: ("Vote", 0),
    quorum.BeginQuorumEpochRequest.kind: ("BeginQuorumEpoch", 0),
    quorum.EndQuorumEpochRequest.kind: ("EndQuorumEpoch", 0),
    quorum.MetadataFetchRequest.kind: ("Fetch", 12),
    quorum.FetchSnapshotRequest.kind: ("FetchSnapshot", 0),
    control.BrokerRegistrationRequest.kind: ("BrokerRegistration", 0),
    control.BrokerHeartbeatRequest.kind: ("BrokerHeartbeat", 0),
    control.AlterPartitionRequest.kind: ("AlterPartition", 2),
    control.CreateTopicsRequest.kind: ("CreateTopics", 7),
    control.CreatePartitionsRequest.kind: ("CreatePartitions", 3),
    control.DeleteTopicsRequest.kind: ("DeleteTopics", 6),
    control.AlterConfigsRequest.kind: ("IncrementalAlterConfigs", 1),
    control.AlterReassignmentsRequest.kind: ("AlterPartitionReassignments", 0),
    control.ElectLeadersRequest.kind: ("ElectLeaders", 2),
    control.AllocateProducerIdsRequest.kind: ("AllocateProducerIds", 0),
    control.UpdateFeaturesRequest.kind: ("UpdateFeatures", 1),
    control.ListReassignmentsRequest.kind: ("ListPartitionReassignments", 0),
    control.DescribeQuorumRequest.kind: ("DescribeQuorum", 0),
    data.FetchRequest.kind: ("Fetch", 12),
    data.ProduceRequest.kind: ("Produce", 9),
    data.ListOffsetsRequest.kind: ("ListOffsets", 7),
    data.InitProducerIdRequest.kind: ("InitProducerId", 4),
    data.OffsetsForLeaderEpochRequest.kind: ("OffsetForLeaderEpoch", 4),
    client.MetadataRequest.kind: ("Metadata", 12),
    client.DescribeConfigsRequest.kind: ("DescribeConfigs", 4),
    client.ApiVersionsRequest.kind: ("ApiVersions", 3),
    client.FindCoordinatorRequest.kind: ("FindCoordinator", 4),
    client.OffsetCommitRequest.kind: ("OffsetCommit", 8),
    client.OffsetFetchRequest.kind: ("OffsetFetch", 8),
    **ZK_APIS,
}
"""Kafka's name of each request, by its kind, and the version where the message states none."""


_KEYS: Final = {kind: API_KEYS[name] for kind, (name, _) in APIS.items()}
TAPED_KINDS: Final = frozenset(
    one
    for kind, key in _KEYS.items()
    if key in TAPED or (key == FETCH and kind != data.FetchRequest.kind)
    for one in (kind, kind + 1)
)
"""Of data the tape has those fetches of followers that tell something new (`Fetches`)."""


def frame_of(
    link: Channel, party: WireLink, message: Any, request: Any, *, time_ns: int, names: TopicNames
) -> Frame:
    """Return the frame of a message on its way; `request`: what it answers, or None."""
    asked = message if request is None else request
    header = Header(
        api_key=_KEYS[asked.kind],
        api_version=version_of(asked),
        correlation_id=message.correlation,
        client_id=(link.sender if request is None else link.receiver).name,
        answered=message.correlation >= 0,
    )
    frame = Frame(
        connection=link.connection,
        link=asked_as(party, asked.kind),
        direction=direction_of(link),
        header=header,
        data=b"",
        time_ns=time_ns,
        names=names,
    )
    (columns, items), entity = parts_of(message)
    # A frame is decoded when its content is asked for; here that is known already.
    frame.__dict__["decoded"] = Decoded(columns, tuple(items), entity)
    return frame


def direction_of(link: Channel) -> Direction:
    """Return the direction of the link: requests or answers go over it."""
    return Direction.REQUEST if link.answers is None else Direction.RESPONSE


def kinds_of(api: str | None, direction: Direction) -> Sequence[int]:
    """List the kinds of messages of an API, or of all."""
    more = 0 if direction is Direction.REQUEST else 1
    return [kind + more for kind, (name, _) in APIS.items() if api is None or name == api]


class ReadsTypes:
    """Stands for the entity of a frame where a rule asks which metadata records it carries."""

    __slots__ = ("record_types",)

    def __init__(self, record_types: frozenset[str]) -> None:
        self.record_types = record_types


def version_of(request: Any) -> int:
    """Return the version of its API that a request speaks."""
    if request.kind == control.BrokerHeartbeatRequest.kind:
        return 1 if request.level >= LEVEL_VISIBILITY else 0
    stated: int = getattr(request, "version", APIS[request.kind][1])
    return stated


def parts_of(message: Any) -> tuple[Parts, Any]:
    """Return the columns and items of a message, and what stands for its entity."""
    read = _READERS.get(message.kind)
    parts: Parts = ({}, ()) if read is None else read(message)
    entity = None
    if message.kind == quorum.MetadataFetchResponse.kind:
        entity = ReadsTypes(
            frozenset(type(one).__name__ for batch in message.batches for one in batch.records)
        )
    return parts, entity


def _error(code: int) -> str:
    return ERROR_NAMES[code]


def _key(key: PartitionKey) -> dict[str, Any]:
    return {"topic_id": text_of(key[0]), "partition": key[1]}


_WRITTEN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "error": _error,
    "isr": list,
    "isr_epochs": lambda epochs: list(epochs) or None,
    "detail": lambda words: words or None,
}
"""The functions that write the values of these columns; None omits the value. Values of other
columns are written unchanged.
"""


def _as_named(columns: str = "", items: str = "", *, of: str = "items") -> Callable[[Any], Parts]:
    """Read a message whose fields are columns by their names.

    `items`: those of each item in the field `of`; of items that are tuples, by position. A `key` is
    two columns.
    """
    own, each = columns.split(), items.split()

    def read(message: Any) -> Parts:
        rows = [_row(each, one) for one in getattr(message, of)] if each else ()
        return _row(own, message), rows

    return read


def _row(names: Sequence[str], value: Any) -> dict[str, Any]:
    values = value if isinstance(value, tuple) else [getattr(value, name) for name in names]
    found: dict[str, Any] = {}
    for name, one in zip(names, values, strict=False):
        if name == "key":
            found |= _key(one)
        elif (written := _WRITTEN[name](one) if name in _WRITTEN else one) is not None:
            found[name] = written
    return found


def _vote(message: quorum.VoteRequest) -> Parts:
    ends = f"log ends at {message.end_offset} in epoch {message.last_epoch}"
    candidate = {"leader_id": message.candidate_id, "leader_epoch": message.epoch}
    return {}, [{**_METADATA, **candidate, "detail": ends}]


def _epoch_request(message: Any) -> Parts:
    return {}, [{**_METADATA, **_led(message)}]


def _epoch_response(message: Any) -> Parts:
    return {"error": "NONE"}, [{**_METADATA, "error": "NONE", **_led(message)}]


def _led(message: Any) -> dict[str, Any]:
    return {"leader_id": message.leader_id, "leader_epoch": message.epoch}


def _metadata_fetch(message: quorum.MetadataFetchRequest) -> Parts:
    asked = {"fetch_offset": message.fetch_offset, "leader_epoch": message.epoch}
    return {"broker_id": message.replica_id}, [{**_METADATA, **asked}]


def _metadata_fetched(message: quorum.MetadataFetchResponse) -> Parts:
    count = sum(len(batch.records) for batch in message.batches)
    said = [f"{count} records"]
    if message.diverging_epoch >= 0:
        end = message.diverging_end_offset
        said.append(f"diverging epoch {message.diverging_epoch} ends at {end}")
    if message.snapshot_end_offset >= 0:
        said.append(f"snapshot {message.snapshot_end_offset}-{message.snapshot_epoch}")
    item = {
        **_METADATA,
        "error": _error(message.error),
        "high_watermark": message.high_watermark,
        "detail": ", ".join(said),
    }
    # Only a node that is not the leader states the leader.
    return {"error": "NONE"}, [{**item, **(_led(message) if message.error else {})}]


def _snapshot_fetch(message: quorum.FetchSnapshotRequest) -> Parts:
    named = f"snapshot {message.end_offset}-{message.snapshot_epoch} from record {message.position}"
    item = {**_METADATA, "leader_epoch": message.epoch, "detail": named}
    return {"broker_id": message.replica_id}, [item]


def _registration(message: control.BrokerRegistrationRequest) -> Parts:
    features = ", ".join(f"{name} {low}-{high}" for name, low, high in message.features)
    before = f"; previous broker epoch {message.broker_epoch}" if message.broker_epoch >= 0 else ""
    return {
        "broker_id": message.broker_id,
        "incarnation_id": text_of(message.incarnation_id),
        "detail": features + before,
    }, ()


def _heartbeat(message: control.BrokerHeartbeatRequest) -> Parts:
    return {
        "broker_id": message.broker_id,
        "broker_epoch": message.broker_epoch,
        "fetch_offset": message.current_metadata_offset - 1,
        "fenced": message.target_state == BrokerState.FENCED,
        "shutting_down": message.target_state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    }, ()


def _heartbeat_answer(message: control.BrokerHeartbeatResponse) -> Parts:
    lowest = message.lowest_acknowledged_offset
    told = f"; lowest acknowledged offset {lowest - 1}" if lowest >= 0 else ""
    columns = {"lowest_acknowledged_offset": lowest - 1} if lowest >= 0 else {}
    return {
        **columns,
        "error": _error(message.error),
        "fenced": message.next_state == BrokerState.FENCED,
        "shutting_down": message.next_state == BrokerState.NOT_RUNNING,
        "detail": ("caught up" if message.is_caught_up else "not caught up") + told,
    }, ()


def _create_topics(message: control.CreateTopicsRequest) -> Parts:
    items = [
        {
            "topic": topic.name,
            "detail": f"{topic.partitions} partitions of {topic.replication_factor} replicas",
        }
        for topic in message.topics
    ]
    return {}, items


def _topics_answer(message: Any) -> Parts:
    return {}, [
        {
            "topic": name,
            "error": _error(error),
            **({"topic_id": text_of(topic_id)} if topic_id > 0 else {}),
        }
        for name, topic_id, error, *_ in message.topics
    ]


def _delete_topics(message: control.DeleteTopicsRequest) -> Parts:
    return {}, [
        {"topic": name} if name else {"topic_id": text_of(topic_id)}
        for name, topic_id in message.topics
    ]


def _reassign(message: control.AlterReassignmentsRequest) -> Parts:
    return {}, [
        {
            "topic": topic,
            "partition": partition,
            "detail": "cancel" if wanted is None else f"replicas {list(wanted)}",
        }
        for topic, partition, wanted in message.moves
    ]


def _fetch(message: data.FetchRequest) -> Parts:
    columns: dict[str, Any] = {"broker_id": message.replica_id, "session_epoch": _NO_SESSION}
    if message.version >= _EPOCHS_FROM:
        columns["broker_epoch"] = message.replica_epoch
    return columns, [
        {**_key(key), "fetch_offset": offset, "leader_epoch": leader_epoch}
        for key, offset, leader_epoch, _last in message.partitions
    ]


def _fetched(message: data.FetchResponse) -> Parts:
    return {"error": _error(message.error)}, [
        {
            **_key(one.key),
            "error": _error(one.error),
            "high_watermark": one.high_watermark,
            "detail": f"{sum(batch.count for batch in one.batches)} records",
        }
        for one in message.partitions
    ]


def _produce(message: data.ProduceRequest) -> Parts:
    return {}, [
        {**_key(key), "producer_id": batch.producer_id, "producer_epoch": batch.producer_epoch}
        for key, batch in message.partitions
    ]


_READERS: Final[Mapping[int, Callable[[Any], Parts]]] = {
    **ZK_READERS,
    quorum.VoteRequest.kind: _vote,
    quorum.VoteResponse.kind: lambda it: (
        {"error": "NONE"},
        [{**_METADATA, **_led(it), "detail": "granted" if it.granted else "refused"}],
    ),
    quorum.BeginQuorumEpochRequest.kind: _epoch_request,
    quorum.BeginQuorumEpochResponse.kind: _epoch_response,
    quorum.EndQuorumEpochRequest.kind: _epoch_request,
    quorum.EndQuorumEpochResponse.kind: _epoch_response,
    quorum.MetadataFetchRequest.kind: _metadata_fetch,
    quorum.MetadataFetchResponse.kind: _metadata_fetched,
    quorum.FetchSnapshotRequest.kind: _snapshot_fetch,
    quorum.FetchSnapshotResponse.kind: lambda it: (_row(["error"], it), [_METADATA | _led(it)]),
    control.BrokerRegistrationRequest.kind: _registration,
    control.BrokerRegistrationResponse.kind: _as_named("error broker_epoch"),
    control.BrokerHeartbeatRequest.kind: _heartbeat,
    control.BrokerHeartbeatResponse.kind: _heartbeat_answer,
    control.AlterPartitionRequest.kind: _as_named(
        "broker_id broker_epoch", "key leader_epoch partition_epoch isr isr_epochs"
    ),
    control.AlterPartitionResponse.kind: _as_named(
        "error", "key error leader_id leader_epoch partition_epoch isr"
    ),
    control.CreateTopicsRequest.kind: _create_topics,
    control.CreateTopicsResponse.kind: _topics_answer,
    control.DeleteTopicsRequest.kind: _delete_topics,
    control.DeleteTopicsResponse.kind: _topics_answer,
    control.AlterReassignmentsRequest.kind: _reassign,
    control.AlterReassignmentsResponse.kind: _as_named(
        "error", "topic partition error detail", of="moves"
    ),
    control.ElectLeadersRequest.kind: lambda it: (
        {"detail": "unclean" if it.unclean else "preferred"},
        [{"topic": topic, "partition": partition} for topic, partition in it.partitions or ()],
    ),
    control.ElectLeadersResponse.kind: _as_named("error", "topic partition error", of="partitions"),
    control.AllocateProducerIdsRequest.kind: _as_named("broker_id broker_epoch"),
    control.AllocateProducerIdsResponse.kind: lambda it: (
        {"error": _error(it.error), "producer_id": it.start, "detail": f"{it.length} producer ids"},
        (),
    ),
    control.UpdateFeaturesResponse.kind: _as_named("error"),
    data.FetchRequest.kind: _fetch,
    data.FetchResponse.kind: _fetched,
    data.ProduceRequest.kind: _produce,
    data.ProduceResponse.kind: _as_named("", "key error", of="partitions"),
    data.InitProducerIdResponse.kind: _as_named("error producer_id producer_epoch"),
    client.ApiVersionsResponse.kind: lambda it: (
        {
            "error": "NONE",
            "metadata_version": it.level,
            "detail": f"finalized: metadata.version {it.level}",
        },
        (),
    ),
}
