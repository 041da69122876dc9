"""Kafka's APIs: their names and keys, and which of them the tape keeps.

A name is Kafka's own, as its documentation writes it: "AlterPartition", "EndTxn".
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kio.schema.index import api_key_map

__all__ = [
    "API_KEYS",
    "API_VERSIONS",
    "FETCH",
    "TAPED",
    "api_name",
]

API_KEYS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "".join(part.capitalize() for part in name.split("_")): key
        for key, name in api_key_map.items()
    }
)
"""Keys by name."""

_NAMES: Final = {key: name for name, key in API_KEYS.items()}

FETCH: Final = API_KEYS["Fetch"]
API_VERSIONS: Final = API_KEYS["ApiVersions"]

TAPED: Final = frozenset(
    API_KEYS[name]
    for name in (
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
    """Return the API's name, or `Api<key>` if the key is unknown here."""
    return _NAMES.get(key, f"Api{key}")
