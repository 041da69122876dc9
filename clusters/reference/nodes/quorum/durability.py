"""The durable end of a voter's log: one sync at a time, and what was truncated does not count."""

from clusters.node_port.effects import SYNC, Effects
from clusters.node_port.storage import METADATA
from clusters.reference.nodes.quorum.metadata_log import MetadataLog
from clusters.reference.nodes.quorum.tokens import QUORUM
from clusters.reference.nodes.rules import Rules

__all__ = ["DurableEnd"]


class DurableEnd:
    """The end offset up to which this node's copy counts."""

    __slots__ = ("_is_syncing", "_log", "_rules", "offset")

    def __init__(self, log: MetadataLog, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        self._is_syncing = False
        self.offset = 0

    def settle(self, effects: Effects) -> bool:
        """Make the log durable up to its end; whether it is so already."""
        self.offset = min(self.offset, self._log.end)
        # Rule append_synced.
        if not self._rules.append_synced:
            self.offset = self._log.end
        if self.offset == self._log.end:
            return True
        if not self._is_syncing:
            self._is_syncing = True
            token = (QUORUM, METADATA, self._log.end, self._log.generation)
            effects.append((SYNC, (METADATA,), token))
        return False

    def synced(self, end: int, generation: int) -> bool:
        """A sync is done; whether more is durable by it."""
        self._is_syncing = False
        if generation != self._log.generation or end <= self.offset:
            return False
        self.offset = end
        return True
