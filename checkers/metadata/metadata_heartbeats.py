"""MetadataHeartbeats as controllers on ZooKeeper have seen them, and the time-outs by them.

Source: the draft "Controller heartbeats, broker incarnation ids".
"""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.metadata.rpcs import UNREACHED, Rpcs, rpcs
from fencepost.checkers.metadata.setting_values import whole_number
from fencepost.checkers.sources import Source

METADATA_HEARTBEAT: Final = "MetadataHeartbeat"
CONTROLLER_SIDE: Final = "controller.heartbeat.timeout.ms"
BROKER_SIDE: Final = "broker.heartbeat.timeout.ms"
LEGACY: Final = "4"
"""The version of a registration by which a broker sends no heartbeats."""

_INCARNATION: Final = ("target", "broker_id", "broker_epoch")


def heartbeats_of(wire: pa.Table | Source) -> Mapping[int, Rpcs]:
    """Return the heartbeats on the tape by broker id, in the order of their arrival."""
    return {
        broker_id: several
        for (broker_id,), several in rpcs(wire, METADATA_HEARTBEAT).by("broker_id").items()
    }


def heard_first(wire: pa.RecordBatch) -> pa.RecordBatch:
    """Return of the heartbeats of each incarnation the first that reached each controller."""
    asked = pc.and_(
        pc.equal(wire.column("api"), METADATA_HEARTBEAT),
        pc.equal(wire.column("direction"), "request"),
    )
    reached = pc.and_(
        pc.is_valid(wire.column("forwarded_ns")),
        pc.invert(pc.is_in(wire.column("action"), pa.array(UNREACHED))),
    )
    beats = wire.filter(pc.and_(asked, reached))
    in_turn = beats.take(pc.sort_indices(beats.column("forwarded_ns")))
    told = zip(*(in_turn.column(name).to_pylist() for name in _INCARNATION), strict=True)
    first = {incarnation: place for place, incarnation in reversed(list(enumerate(told)))}
    return in_turn.take(pa.array(sorted(first.values()), pa.int64()))


def timeouts_ms(node_settings: pa.Table, name: str) -> Mapping[str, int]:
    """Return a time-out by node, of those that state one."""
    stated = node_settings.filter(pc.equal(node_settings["name"], name))
    found = {row["node"]: whole_number(row["value"]) for row in stated.to_pylist()}
    return {node: timeout_ms for node, timeout_ms in found.items() if timeout_ms is not None}
