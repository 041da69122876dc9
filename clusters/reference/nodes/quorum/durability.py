"""The durable state of a voter: how far its log counts, and what it has promised."""

from collections import deque

from fencepost.clusters.node_port.effects import SYNC, WRITE, Effects
from fencepost.clusters.node_port.storage import METADATA, QUORUM_STATE, QuorumState
from fencepost.clusters.reference.nodes.quorum.metadata_log import QUORUM, MetadataLog
from fencepost.clusters.reference.nodes.rules import Rules


class DurableEnd:
    """The end offset up to which this node's copy counts.

    One sync at a time; what was truncated does not count.
    """

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


class QuorumStateWrites:
    """Writes of the quorum state, and the effects that wait for them."""

    __slots__ = ("_kept", "_made", "_rules", "_waiting")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._made = 0
        self._kept = 0
        self._waiting: deque[tuple[int, Effects]] = deque()

    @property
    def are_kept(self) -> bool:
        """Return whether all that was promised is durable."""
        return self._kept == self._made

    def mention(self, state: QuorumState, effects: Effects) -> None:
        """Write a state that promises nothing to any node."""
        effects.append((WRITE, QUORUM_STATE, state))

    def make(self, state: QuorumState, then: Effects, effects: Effects) -> None:
        """Write the state; what it promises follows once it is durable."""
        effects.append((WRITE, QUORUM_STATE, state))
        # Rule vote_synced.
        if not self._rules.vote_synced:
            effects.extend(then)
            return
        self._made += 1
        self._waiting.append((self._made, then))
        effects.append((SYNC, (QUORUM_STATE,), (QUORUM, QUORUM_STATE, self._made)))

    def keep(self, made: int, effects: Effects) -> None:
        """Note that all promises up to this one are durable."""
        self._kept = max(self._kept, made)
        while self._waiting and self._waiting[0][0] <= self._kept:
            effects.extend(self._waiting.popleft()[1])
