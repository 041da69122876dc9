"""APIs as rules and the tape name them: Kafka's own names, and those of ZooKeeper's messages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fencepost.clusters.protocol.api_keys import KEYS
from fencepost.nemesis.wire.zookeeper.messages import KEYS as MESSAGE_KEYS

API_KEYS: Final[Mapping[str, int]] = MappingProxyType({**KEYS, **MESSAGE_KEYS})
"""Keys by name."""

_NAMES: Final = {key: name for name, key in API_KEYS.items()}

FETCH: Final = API_KEYS["Fetch"]
API_VERSIONS: Final = API_KEYS["ApiVersions"]


def api_name(key: int) -> str:
    """Return the API's name; `Api<key>` if the key is unknown here, "bytes" without one."""
    if key < 0:
        return "bytes"
    return _NAMES.get(key, f"Api{key}")
