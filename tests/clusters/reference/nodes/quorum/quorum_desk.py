"""One voter or observer, driven by hand: what it is given and sends, and when its disk syncs."""

from typing import Any

from quorum_world import configuration_of

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import NOTE, SEND, SYNC, SYNCED, TICK, TICK_NS
from fencepost.clusters.node_port.storage import METADATA, QUORUM_STATE, Contents, QuorumState
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.quorum.observer import QuorumObserver
from fencepost.clusters.reference.nodes.quorum.snapshots import SnapshotCodec
from fencepost.clusters.reference.nodes.quorum.voter import Voter
from fencepost.clusters.reference.nodes.rules import Rules

OWN = 1001


class Desk:
    """A node under test. Syncs wait until `sync` is called."""

    def __init__(
        self,
        *off: str,
        node_id: int = OWN,
        voters: tuple[int, ...] = (1001, 1002, 1003),
        contents: Contents | None = None,
        opened: bool = True,
        snapshots: SnapshotCodec | None = None,
        **bounds: int,
    ) -> None:
        self.configuration: Configuration = configuration_of(node_id, voters, **bounds)
        rules = Rules().without(*off)
        kind = Voter if node_id in voters else QuorumObserver
        self.part: Any = kind(self.configuration, rules, Alarm(), snapshots=snapshots)
        self.now = 0
        self.effects: list[tuple[Any, ...]] = []
        self._tokens: list[Any] = []
        self.part.start(self.now, contents or Contents(), self._step())
        self._took()
        if opened:
            self.sync()

    def give(self, message: Any, source: int = 1002) -> list[Any]:
        """Hand over a message; the messages that follow from it, without their targets."""
        self.part.handle(self.now, source, message.kind, message, self._step())
        return self._took()

    def event(self, kind: int, message: Any = None, source: int = -1) -> list[Any]:
        self.part.handle(self.now, source, kind, message, self._step())
        return self._took()

    def sync(self) -> list[Any]:
        """Let all syncs that were asked for be done, in order."""
        sent = []
        while self._tokens:
            sent += self.sync_one()
        return sent

    def sync_one(self) -> list[Any]:
        """Let the oldest sync be done."""
        return self.event(SYNCED, self._tokens.pop(0))

    def wait(self, ns: int) -> list[Any]:
        """Let time go by, tick by tick."""
        sent = []
        for _ in range(ns // TICK_NS):
            self.now += TICK_NS
            sent += self.event(TICK)
        return sent

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """One of the methods that take effects last."""
        getattr(self.part, method)(*arguments, self._step())
        return self._took()

    def notes(self) -> list[tuple[Any, ...]]:
        """Of the last step."""
        return [effect[1:] for effect in self.effects if effect[0] == NOTE]

    def performed(self, what: int) -> list[tuple[Any, ...]]:
        return [effect[1:] for effect in self.effects if effect[0] == what]

    def _step(self) -> list[tuple[Any, ...]]:
        self.effects = []
        return self.effects

    def _took(self) -> list[Any]:
        self._tokens += [effect[2] for effect in self.effects if effect[0] == SYNC]
        return [effect[2] for effect in self.effects if effect[0] == SEND]


def disk(*batches: Any, epoch: int = 0, voted_for: int = -1, leader_id: int = -1) -> Contents:
    """A voter's disk."""
    state = QuorumState(epoch=epoch, voted_for=voted_for, leader_id=leader_id)
    return Contents(files={QUORUM_STATE: state}, logs={METADATA: list(batches)})
