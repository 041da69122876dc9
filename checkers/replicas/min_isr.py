"""The smallest ISR that a partition may have, and the time since which a leader went by it.

The setting `min.insync.replicas` is the smallest that a topic can have had: of all the values that
the log states of it or, if it states none, the smallest of the nodes' own settings; and never more
than there are replicas.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.facts import Facts, Tables
from fencepost.checkers.metadata.partition_states import PartitionVersion
from fencepost.checkers.metadata.setting_values import whole_number
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.standstills import Standstills

SETTING: Final = "min.insync.replicas"
MORE_THAN_THE_LEADER: Final = 2
"""The smallest number that a leader alone is not enough for."""
_DEFAULT: Final = 1
_NOTHING_SAID: Final = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
_SETTLED_NS: Final = 1_000_000_000
"""Between a leader's saying that it has applied a version, and its acting upon it at the latest:
time in which it ran. Releases before 3.5 note an offset first, and then apply what is there."""


def enough(version: PartitionVersion, wanted: int) -> int:
    """Return how many members an ISR of this version must have."""
    return min(wanted, len(version.replicas))


def min_isr(topic: str, node_settings: pa.Table, seen: MetadataView) -> int:
    """Return the smallest setting that the topic can have had."""
    stated = [
        record.value
        for record in seen.log.records
        if record.type == "ConfigRecord" and record.topic == topic and record.name == SETTING
    ]
    return _smallest(stated) if stated else _default(node_settings, seen)


def _default(node_settings: pa.Table, seen: MetadataView) -> int:
    """Return the setting of topics without one: from the nodes' settings and later changes."""
    stated = node_settings.filter(pc.equal(node_settings["name"], SETTING))
    silent = set(seen.facts.brokers) - set(stated["node"].to_pylist())
    told = [
        record.value
        for record in seen.log.records
        if record.type == "ConfigRecord" and not record.topic and record.name == SETTING
    ]
    return _smallest([*stated["value"].to_pylist(), *told, *([None] if silent else [])])


def _smallest(values: Iterable[str | None]) -> int:
    """Return the smallest value; null takes a setting away: then the release's default counts."""
    stated = (whole_number(value) for value in values)
    return min((_DEFAULT if one is None else one for one in stated), default=_DEFAULT)


class AppliedOffsets:
    """The offsets that brokers said in heartbeats they had applied, and when they first said so."""

    def __init__(self, tables: Tables, facts: Facts) -> None:
        """Read `metadata_offsets` and `faults`."""
        offsets = tables["metadata_offsets"]
        self._stood_still = Standstills.of(tables["faults"]).of_processes
        beats = offsets.filter(pc.equal(offsets["source"], "heartbeat")).sort_by("metadata_offset")
        self._nodes = facts.nodes()
        self._said: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        for node in pc.unique(beats["node"]).to_pylist():
            mine = beats.filter(pc.equal(beats["node"], node))
            time_ns = mine["time_ns"].to_numpy()
            first_ns = np.minimum.accumulate(time_ns[::-1])[::-1]
            self._said[node] = mine["metadata_offset"].to_numpy(), first_ns

    def known_ns(self, version: PartitionVersion) -> int | None:
        """Return from when on the leader acted upon this version; None: it never said it knew."""
        return self.since_ns(version.leader, version.metadata_offset)

    def since_ns(self, broker_id: int, metadata_offset: int) -> int | None:
        """Return from when on a broker acted upon this record; None: it never said it knew."""
        node = self._nodes.get(broker_id, "")
        offset, first_ns = self._said.get(node, _NOTHING_SAID)
        place = int(np.searchsorted(offset, metadata_offset))
        if place == len(offset):
            return None
        return self._stood_still.acted_by_ns(int(first_ns[place]), _SETTLED_NS, node=node)
