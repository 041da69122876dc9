"""APIs as rules and the tape name them: their names and keys, and which of Kafka's the tape keeps.

A name is Kafka's own, as its documentation writes it: "AlterPartition", "EndTxn"; the names of
ZooKeeper's messages are beside their readers, those of the reference cluster beside its codec.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from clusters.protocol.api_keys import GIVEN_UP, KEYS, OF_DRAFT
from nemesis.wire.zookeeper.messages import KEYS as MESSAGE_KEYS

__all__ = [
    "API_KEYS",
    "API_VERSIONS",
    "FETCH",
    "TAPED",
    "api_name",
]

API_KEYS: Final[Mapping[str, int]] = MappingProxyType({**KEYS, **MESSAGE_KEYS})
"""Keys by name."""

_NAMES: Final = {key: name for name, key in API_KEYS.items()}

FETCH: Final = API_KEYS["Fetch"]
API_VERSIONS: Final = API_KEYS["ApiVersions"]

TAPED: Final = frozenset(
    API_KEYS[name]
    for name in (
        *GIVEN_UP,
        *OF_DRAFT,
        "AddPartitionsToTxn",
        "AddRaftVoter",
        "AllocateProducerIds",
        "AlterPartition",
        "AlterPartitionReassignments",
        "ApiVersions",
        "AssignReplicasToDirs",
        "BeginQuorumEpoch",
        "BrokerHeartbeat",
        "BrokerRegistration",
        "ControllerRegistration",
        "CreateTopics",
        "DeleteTopics",
        "ElectLeaders",
        "EndQuorumEpoch",
        "EndTxn",
        "Envelope",
        "FetchSnapshot",
        "InitProducerId",
        "RemoveRaftVoter",
        "UnregisterBroker",
        "UpdateFeatures",
        "Vote",
        "WriteTxnMarkers",
    )
)
"""The APIs of the control plane, whose every frame is on the tape."""


def api_name(key: int) -> str:
    """Return the API's name; `Api<key>` if the key is unknown here, "bytes" without one."""
    if key < 0:
        return "bytes"
    return _NAMES.get(key, f"Api{key}")
