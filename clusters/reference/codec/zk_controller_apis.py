"""The requests of a controller of the ZooKeeper generation to brokers, in Kafka's last versions.

LeaderAndIsr 7, StopReplica 4, UpdateMetadata 8. `LiveLeaders` is left empty: a broker finds another
one by UpdateMetadata, or by its registration.
"""

from typing import Final

from fencepost.clusters.protocol.rpc import RpcTable
from fencepost.clusters.protocol.rpcs.controllers import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from fencepost.clusters.reference.codec.api import Api, ListenerType, Traffic
from fencepost.clusters.reference.codec.tables import between_nodes
from fencepost.clusters.reference.zk.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveBroker,
    PartitionState,
    StoppedPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)


def _api(rpc: RpcTable, version: int, *, request: type, response: type, **into: type) -> Api:
    return between_nodes(
        rpc,
        (version, version),
        (ListenerType.BROKER,),
        request=request,
        response=response,
        into=into,
        traffic=Traffic.CONTROLLER,
    )


ZK_CONTROLLER_APIS: Final = (
    _api(
        LEADER_AND_ISR,
        7,
        request=LeaderAndIsrRequest,
        response=LeaderAndIsrResponse,
        partitions=PartitionState,
    ),
    _api(
        STOP_REPLICA,
        4,
        request=StopReplicaRequest,
        response=StopReplicaResponse,
        partitions=StoppedPartition,
    ),
    _api(
        UPDATE_METADATA,
        8,
        request=UpdateMetadataRequest,
        response=UpdateMetadataResponse,
        partitions=PartitionState,
        brokers=LiveBroker,
    ),
)
