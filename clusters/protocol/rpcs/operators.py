"""RPCs of clients: reassignments and elections, which operators ask for, and producer ids."""

from collections.abc import Mapping
from typing import Any, Final

from fencepost.clusters.protocol.rpc import (
    ITSELF,
    Converter,
    RpcField,
    RpcTable,
    Told,
    ValueKind,
    field,
    rows,
    taped,
)

_UNCLEAN: Final = 1
_ERROR: Final = taped("error", "error_code", ValueKind.ERROR)
_INDEX: Final = field("partition", "partition_index")
_PRODUCER: Final = ("producer_id", "producer_epoch")


def _replicas(wanted: Any) -> Mapping[str, Any]:
    return {"detail": "cancel" if wanted is None else f"replicas {list(map(int, wanted))}"}


def _election(request: Any) -> Mapping[str, Any]:
    unclean = getattr(request, "election_type", 0) == _UNCLEAN
    return {"detail": "unclean" if unclean else "preferred"}


ALTER_REASSIGNMENTS: Final = RpcTable(
    name="AlterPartitionReassignments",
    asks=(
        rows(
            "moves",
            "topics",
            (field("topic", "name"),),
            "partitions",
            _INDEX,
            taped("replicas", way=ValueKind.NUMBERS_OR_NONE, column=_replicas),
        ),
    ),
    answers=(
        _ERROR,
        rows(
            "moves",
            "responses",
            (field("topic", "name"),),
            "partitions",
            _INDEX,
            _ERROR,
            taped("words", "error_message", ValueKind.NAME, column="detail"),
        ),
    ),
)
ELECT_LEADERS: Final = RpcTable(
    name="ElectLeaders",
    asks=(
        field(
            "unclean",
            "election_type",
            Converter(lambda kind: kind == _UNCLEAN, lambda unclean: _UNCLEAN if unclean else 0),
        ),
        Told(_election),
        rows(
            "partitions",
            "topic_partitions",
            (field("topic"),),
            "partitions",
            field("partition", ITSELF),
            nullable=True,
        ),
    ),
    answers=(
        _ERROR,
        rows(
            "partitions",
            "replica_election_results",
            (field("topic"),),
            "partition_result",
            field("partition", "partition_id"),
            _ERROR,
            RpcField("", "error_message", column="detail"),
        ),
    ),
)
INIT_PRODUCER_ID: Final = RpcTable(
    name="InitProducerId",
    asks=(taped("transactional_id"), *(RpcField("", name, column=name) for name in _PRODUCER)),
    answers=(_ERROR, *(taped(name) for name in _PRODUCER)),
)
