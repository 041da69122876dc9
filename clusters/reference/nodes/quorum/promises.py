"""The promises of a voter: what it must not forget is durable before any other node hears of it."""

from collections import deque

from clusters.node_port.effects import SYNC, WRITE, Effects
from clusters.node_port.storage import QUORUM_STATE, QuorumState
from clusters.reference.nodes.quorum.tokens import QUORUM
from clusters.reference.nodes.rules import Rules

__all__ = ["Promises"]


class Promises:
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
