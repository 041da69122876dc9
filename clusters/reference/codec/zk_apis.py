"""The requests of brokers of the ZooKeeper generation to their controller, and all they take.

ControlledShutdown is Kafka's in its last version, 3; MetadataHeartbeat and IsrChange are laid out
as the draft "Controller heartbeats" says.
"""

from typing import Final

from fencepost.clusters.protocol.rpcs.brokers import (
    CONTROLLED_SHUTDOWN,
    ISR_CHANGE,
    METADATA_HEARTBEAT,
)
from fencepost.clusters.reference.codec.api import ListenerType, Traffic
from fencepost.clusters.reference.codec.client_apis import CLIENT_APIS
from fencepost.clusters.reference.codec.data_apis import DATA_APIS
from fencepost.clusters.reference.codec.operator_apis import OPERATOR_APIS
from fencepost.clusters.reference.codec.tables import between_nodes
from fencepost.clusters.reference.codec.write_apis import WRITE_APIS
from fencepost.clusters.reference.codec.zk_controller_apis import ZK_CONTROLLER_APIS
from fencepost.clusters.reference.nodes.messages.control import UpdateFeaturesRequest
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    IsrChange,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)

_DOORS: Final = (ListenerType.BROKER,)
_CONTROLLED_SHUTDOWN: Final = 3
_OF_BROKERS: Final = (
    between_nodes(
        CONTROLLED_SHUTDOWN,
        (_CONTROLLED_SHUTDOWN, _CONTROLLED_SHUTDOWN),
        _DOORS,
        request=ControlledShutdownRequest,
        response=ControlledShutdownResponse,
        traffic=Traffic.HEARTBEATS,
    ),
    between_nodes(
        METADATA_HEARTBEAT,
        (0, 0),
        _DOORS,
        request=MetadataHeartbeatRequest,
        response=MetadataHeartbeatResponse,
        traffic=Traffic.HEARTBEATS,
    ),
    between_nodes(
        ISR_CHANGE,
        (0, 1),
        _DOORS,
        request=IsrChangeRequest,
        response=IsrChangeResponse,
        into={"changes": IsrChange},
        traffic=Traffic.ISR_CHANGE,
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
