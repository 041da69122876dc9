"""Messages of the ZooKeeper generation as rules and the tape see them."""

from typing import Any

import pytest

from clusters.reference.nodes.errors import Error
from clusters.reference.zk import messages as zk
from clusters.reference.zk.states import ControlledState
from nemesis.simulated.columns import APIS, TAPED_KINDS, kinds_of, parts_of
from nemesis.simulated.zk_columns import ZK_APIS
from nemesis.wire.rules import Direction

KEY = (7, 0)
STATE = zk.PartitionState(KEY, "t", 4, 2, 3, (2, 1), 5, (1, 2), is_new=True, recovering=True)
LED = {
    "topic": "t",
    "partition": 0,
    "leader_id": 2,
    "leader_epoch": 3,
    "partition_epoch": 5,
    "isr": [2, 1],
}
CONTROLLER = {"controller_epoch": 4, "broker_epoch": 9}
ACTIVE = {"fenced": False, "shutting_down": False, "detail": "ACTIVE"}


@pytest.mark.parametrize(
    ("message", "columns", "items"),
    [
        (
            zk.LeaderAndIsrRequest(1, 2, 4, 9, is_full=True, partitions=(STATE,)),
            CONTROLLER,
            [LED | {"detail": "replicas [1, 2], new, recovering"}],
        ),
        (
            zk.UpdateMetadataRequest(1, 2, 4, 9, (STATE,), (zk.LiveBroker(1, ()),)),
            CONTROLLER | {"detail": "live brokers [1]"},
            [LED],
        ),
        (
            zk.StopReplicaRequest(1, 2, 4, 9, (zk.StoppedPartition("t", 0, 3, delete=True),)),
            CONTROLLER,
            [{"topic": "t", "partition": 0, "leader_epoch": 3, "delete": True}],
        ),
        (
            zk.StopReplicaResponse(1, 0, (("t", 0, int(Error.STALE_BROKER_EPOCH)),)),
            {"error": "NONE"},
            [{"topic": "t", "partition": 0, "error": "STALE_BROKER_EPOCH"}],
        ),
        (zk.LeaderAndIsrResponse(1, 0, ((KEY, 0),)), {"error": "NONE"}, [{"partition": 0}]),
        (zk.UpdateMetadataResponse(1, 0), {"error": "NONE"}, []),
        (zk.ControlledShutdownRequest(1, 2, 9), {"broker_id": 2, "broker_epoch": 9}, []),
        (
            zk.ControlledShutdownResponse(1, 0, (("t", 0),)),
            {"error": "NONE"},
            [{"topic": "t", "partition": 0}],
        ),
        (
            zk.MetadataHeartbeatRequest(1, 2, 9, ControlledState.ACTIVE),
            {"broker_id": 2, "broker_epoch": 9, **ACTIVE},
            [],
        ),
        (
            zk.MetadataHeartbeatResponse(1, 0, None, ControlledState.INACTIVE),
            {"error": "NONE", "fenced": True, "shutting_down": False, "detail": "INACTIVE"},
            [],
        ),
        (
            zk.IsrChangeRequest(1, 2, 9, 1, (("t", (zk.IsrChange(0, 3, (2, 1), (9, 8)),)),)),
            {"broker_id": 2, "broker_epoch": 9},
            [
                {
                    "topic": "t",
                    "partition": 0,
                    "leader_epoch": 3,
                    "isr": [2, 1],
                    "isr_epochs": [9, 8],
                }
            ],
        ),
        (
            zk.IsrChangeResponse(1, 0, None, ((0, "granted"),)),
            {"error": "NONE"},
            [{"error": "NONE", "detail": "granted"}],
        ),
    ],
)
def test_a_message_says_what_a_frame_of_it_says(
    message: Any, columns: dict[str, Any], items: list[dict[str, Any]]
) -> None:
    (found, rows), _ = parts_of(message)
    assert found == columns
    assert len(rows) == len(items)
    for row, item in zip(rows, items, strict=True):
        assert item.items() <= row.items()


def test_all_of_them_are_taped_and_found_by_their_names() -> None:
    assert ZK_APIS.items() <= APIS.items()
    assert {one for kind in ZK_APIS for one in (kind, kind + 1)} <= TAPED_KINDS
    assert kinds_of("IsrChange", Direction.RESPONSE) == [zk.IsrChangeResponse.kind]
