"""The RPCs of the quorum of controllers (KIP-595, KIP-630), but for Fetch.

Each names one partition, that of the metadata log. A candidate is in the column `leader_id`: it
would lead in this epoch.
"""

from collections.abc import Mapping
from typing import Any, Final

from fencepost.clusters.protocol.rpc import (
    Converter,
    Inside,
    RpcField,
    RpcTable,
    Told,
    ValueKind,
    field,
    in_log,
    taped,
)

_BYTES_MAX: Final = 1 << 26
_VOTER: Final = RpcField("", "voter_id", column="broker_id")
_LEADER: Final = (taped("epoch", "leader_epoch", column="leader_epoch"), taped("leader_id"))
_ERROR: Final = taped("error", "error_code", ValueKind.ERROR)
_SHOWN_ERROR: Final = RpcField("", "error_code", ValueKind.ERROR, column="error")
"""No node of ours says it."""


def _log_end(partition: Any) -> Mapping[str, Any]:
    before = "pre-vote, " if getattr(partition, "pre_vote", False) else ""
    end, epoch = partition.last_offset, partition.last_offset_epoch
    return {"detail": f"{before}log ends at {end} in epoch {epoch}"}


def _snapshot_asked(partition: Any) -> Mapping[str, Any]:
    return {"detail": f"{_snapshot(partition)} from byte {partition.position}"}


def _snapshot_given(partition: Any) -> Mapping[str, Any]:
    piece = f"{len(partition.unaligned_records)} of {partition.size} B"
    return {"detail": f"{_snapshot(partition)}, {piece} from byte {partition.position}"}


def _snapshot(partition: Any) -> str:
    return f"snapshot {partition.snapshot_id.end_offset}-{partition.snapshot_id.epoch}"


def leader_stated(partition: Any) -> Mapping[str, Any]:
    """Return the leader as stated: only a node that is not the leader states one; else defaults."""
    leader = getattr(partition, "current_leader", None)
    if leader is None or leader.leader_epoch < 0:
        return {}
    return {"leader_id": leader.leader_id, "leader_epoch": leader.leader_epoch}


VOTE: Final = RpcTable(
    name="Vote",
    asks=(
        _VOTER,
        in_log(
            taped("epoch", "replica_epoch", column="leader_epoch"),
            taped("candidate_id", "replica_id", column="leader_id"),
            field("last_epoch", "last_offset_epoch"),
            field("end_offset", "last_offset"),
            Told(_log_end),
        ),
    ),
    answers=(
        _SHOWN_ERROR,
        in_log(
            _SHOWN_ERROR,
            *_LEADER,
            taped(
                "granted",
                "vote_granted",
                column=lambda granted: {"detail": "granted" if granted else "refused"},
            ),
        ),
    ),
)
BEGIN_QUORUM_EPOCH: Final = RpcTable(
    name="BeginQuorumEpoch",
    asks=(_VOTER, in_log(*_LEADER)),
    answers=(_SHOWN_ERROR, in_log(_SHOWN_ERROR, *_LEADER)),
)
END_QUORUM_EPOCH: Final = RpcTable(
    name="EndQuorumEpoch",
    asks=(in_log(*_LEADER, field("successors", "preferred_successors", ValueKind.NUMBERS)),),
    answers=(_SHOWN_ERROR, in_log(_SHOWN_ERROR, *_LEADER)),
)
FETCH_SNAPSHOT: Final = RpcTable(
    name="FetchSnapshot",
    asks=(
        taped("replica_id", column="broker_id"),
        field(
            "size_max",
            "max_bytes",
            Converter(lambda value: value, lambda value: min(value, _BYTES_MAX)),
        ),
        in_log(
            taped("epoch", "current_leader_epoch", column="leader_epoch"),
            Inside("snapshot_id", (field("end_offset"), field("snapshot_epoch", "epoch"))),
            field("position"),
            Told(_snapshot_asked),
        ),
    ),
    answers=(
        _SHOWN_ERROR,
        in_log(
            _ERROR,
            Inside("current_leader", (field("epoch", "leader_epoch"), field("leader_id"))),
            Told(leader_stated),
            field("size"),
            field("position"),
            field("piece", "unaligned_records", Converter(bytes, lambda value: value or b"")),
            Told(_snapshot_given),
        ),
    ),
)
