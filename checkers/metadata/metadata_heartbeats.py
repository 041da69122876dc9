"""MetadataHeartbeats as controllers on ZooKeeper have seen them, and the time-outs by them.

Source: the draft "Controller heartbeats, broker incarnation ids".
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.metadata.rpcs import Rpc, rpcs
from checkers.metadata.setting_values import whole_number

__all__ = [
    "BROKER_SIDE",
    "CONTROLLER_SIDE",
    "LEGACY",
    "METADATA_HEARTBEAT",
    "heartbeats_of",
    "timeouts_ms",
]

METADATA_HEARTBEAT: Final = "MetadataHeartbeat"
CONTROLLER_SIDE: Final = "controller.heartbeat.timeout.ms"
BROKER_SIDE: Final = "broker.heartbeat.timeout.ms"
LEGACY: Final = "4"
"""The version of a registration by which a broker sends no heartbeats."""


def heartbeats_of(wire: pa.Table) -> Mapping[int, Sequence[Rpc]]:
    """Return the heartbeats on the tape by broker id, in the order of their arrival."""
    found: dict[int, list[Rpc]] = {}
    for rpc in rpcs(wire, METADATA_HEARTBEAT):
        found.setdefault(rpc.of("broker_id"), []).append(rpc)
    return found


def timeouts_ms(node_settings: pa.Table, name: str) -> Mapping[str, int]:
    """Return a time-out by node, of those that state one."""
    stated = node_settings.filter(pc.equal(node_settings["name"], name))
    found = {row["node"]: whole_number(row["value"]) for row in stated.to_pylist()}
    return {node: timeout_ms for node, timeout_ms in found.items() if timeout_ms is not None}
