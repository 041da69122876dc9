"""The requests of brokers of the ZooKeeper generation to their controller, and all they take.

ControlledShutdown is Kafka's in its last version, 3; MetadataHeartbeat and IsrChange are laid out
as the draft "Controller heartbeats" says.
"""

from typing import Final

from clusters.protocol.api_keys import GIVEN_UP, OF_DRAFT
from clusters.reference.codec.api import Door, Traffic
from clusters.reference.codec.client_apis import CLIENT_APIS
from clusters.reference.codec.data_apis import DATA_APIS
from clusters.reference.codec.layout import ERROR, NUMBERS, between_nodes, each, field
from clusters.reference.codec.operator_apis import OPERATOR_APIS
from clusters.reference.codec.write_apis import WRITE_APIS
from clusters.reference.codec.zk_controller_apis import ZK_CONTROLLER_APIS
from clusters.reference.nodes.messages.control import UpdateFeaturesRequest
from clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    IsrChange,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)

__all__ = ["ZK_APIS", "ZK_BROKER_APIS"]

_DOORS: Final = (Door.BROKER,)
_CONTROLLED_SHUTDOWN: Final = 3
_BROKER: Final = field("broker_id")
_INCARNATION: Final = field("incarnation_id")
_CHANGES: Final = each(
    field("partition", "partition_index"),
    field("leader_epoch"),
    field("isr", "isr_nodes", NUMBERS),
    field("incarnations", way=NUMBERS, missing=()),
    into=IsrChange,
)
_OF_BROKERS: Final = (
    between_nodes(
        "ControlledShutdown",
        GIVEN_UP["ControlledShutdown"],
        (_CONTROLLED_SHUTDOWN, _CONTROLLED_SHUTDOWN),
        _DOORS,
        request=ControlledShutdownRequest,
        asks=(_BROKER, field("broker_epoch")),
        response=ControlledShutdownResponse,
        traffic=Traffic.HEARTBEATS,
        answers=(
            field("error", "error_code", ERROR),
            field(
                "remaining",
                "remaining_partitions",
                each(field("topic", "topic_name"), field("partition", "partition_index")),
            ),
        ),
    ),
    between_nodes(
        "MetadataHeartbeat",
        OF_DRAFT["MetadataHeartbeat"],
        (0, 0),
        _DOORS,
        request=MetadataHeartbeatRequest,
        asks=(_BROKER, _INCARNATION, field("target_state")),
        response=MetadataHeartbeatResponse,
        traffic=Traffic.HEARTBEATS,
        answers=(
            field("error", "error_code"),
            field("error_message", "error_string"),
            field("current_state"),
        ),
    ),
    between_nodes(
        "IsrChange",
        OF_DRAFT["IsrChange"],
        (0, 1),
        _DOORS,
        request=IsrChangeRequest,
        asks=(
            _BROKER,
            _INCARNATION,
            field(
                "topics",
                way=each(field("topic", "topic_name"), field("changes", "partitions", _CHANGES)),
            ),
        ),
        response=IsrChangeResponse,
        traffic=Traffic.ISR_CHANGE,
        answers=(
            field("error", "top_level_error_code"),
            field("error_message", "top_level_error_message"),
            field(
                "results",
                way=each(field("error", "error_code"), field("words", "error_message")),
            ),
        ),
    ),
)
ZK_BROKER_APIS: Final = (*ZK_CONTROLLER_APIS, *_OF_BROKERS)
"""Those that nodes of this generation alone ask each other."""
ZK_APIS: Final = (
    *ZK_BROKER_APIS,
    *(one for one in WRITE_APIS if one.kind != UpdateFeaturesRequest.kind),
    *OPERATOR_APIS,
    *DATA_APIS,
    *CLIENT_APIS,
)
"""All that a broker of this generation takes: it has no metadata.version to raise."""
