"""The keys of APIs by their names, which are Kafka's own: "AlterPartition", "EndTxn".

GIVEN_UP are Kafka's, of controllers that keep their state in ZooKeeper; Kafka 4.0 has given them
up. OF_DRAFT are those of the draft "Controller heartbeats", which was never released and gives no
keys. They lie beyond Kafka's keys (below 100) and under 1000, up to which a header is Kafka's.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kio.schema.index import api_key_map

GIVEN_UP: Final[Mapping[str, int]] = MappingProxyType(
    {"LeaderAndIsr": 4, "StopReplica": 5, "UpdateMetadata": 6, "ControlledShutdown": 7}
)
OF_DRAFT: Final[Mapping[str, int]] = MappingProxyType({"MetadataHeartbeat": 900, "IsrChange": 901})
KEYS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "".join(part.capitalize() for part in name.split("_")): key
        for key, name in api_key_map.items()
    }
    | {**GIVEN_UP, **OF_DRAFT}
)
