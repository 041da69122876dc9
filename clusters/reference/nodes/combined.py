"""A node that is controller and broker at once: one process, one disk, one metadata log.

The log is the voter's. The broker replays it as the voter has it, and fetches nothing; all else
that a broker says to a controller it says over the network, also to the one in its own process. So
the two halves share a fate and nothing but the log. They are told apart by the listener at which a
request comes in, and by its kind where an event or an answer comes back.

A clean end takes the broker's leave first, which needs controllers; the vote is given up after it.

Source: KIP-500 and KIP-631 (`process.roles=broker,controller`).
"""

from dataclasses import replace
from typing import Any, Final

from fencepost.clusters.node_port.effects import (
    EXIT,
    START,
    STOP,
    SYNCED,
    TICK,
    UNREACHABLE,
    Effects,
)
from fencepost.clusters.node_port.storage import Contents
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.controller import OTHERS_FROM, ControllerNode
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages.quorum import VoteRequest
from fencepost.clusters.reference.nodes.quorum.metadata_log import QUORUM, MetadataLog
from fencepost.clusters.reference.nodes.quorum.snapshots import SnapshotCodec
from fencepost.clusters.reference.nodes.quorum.voter import Voter
from fencepost.clusters.reference.nodes.quorum_broker import quorum_broker
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.nodes.serving.groups import CommitCodec
from fencepost.clusters.reference.nodes.situation import Situation

_SELF: Final = -1


class CombinedNode:
    """Both halves, as one node."""

    __slots__ = ("_broker", "_controller")

    def __init__(
        self,
        configuration: Configuration,
        rules: Rules,
        *,
        codec: CommitCodec | None = None,
        snapshots: SnapshotCodec | None = None,
    ) -> None:
        self._controller = ControllerNode(configuration, rules, snapshots=snapshots)
        self._broker = quorum_broker(
            replace(configuration, is_controller=False),
            rules,
            codec=codec,
            log=_VotersLog(self._controller.voter),
        )

    @property
    def leads(self) -> bool:
        """Return whether it leads the quorum, as far as it knows."""
        return self._controller.voter.is_leader

    @property
    def image(self) -> MetadataImage:
        """The metadata that the broker has applied."""
        return self._broker.image

    @property
    def situation(self) -> Situation:
        """The situation of the broker."""
        return self._broker.situation

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event, an answer, or a request that came in at a broker's listener."""
        if kind in (START, TICK):
            self._controller.handle(now, source, kind, message, effects)
            self._serve(now, source, kind, message, effects)
            self._broker.registrar.moved(now, effects)
        elif _is_of_quorum(kind, message):
            self.vote(now, source, kind, message, effects)
        else:
            self._serve(now, source, kind, message, effects)

    def vote(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take what concerns the controller alone, as a request at its listener does."""
        self._controller.handle(now, source, kind, message, effects)
        self._broker.registrar.moved(now, effects)

    def _serve(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Have the broker take it; if it ends in peace, the controller ends, too."""
        self._broker.handle(now, source, kind, message, effects)
        if effects and effects[-1] == (EXIT, ""):
            effects.pop()
            self._controller.handle(now, _SELF, STOP, None, effects)


def _is_of_quorum(kind: int, message: Any) -> bool:
    """Return whether an event, or an answer, is of what voters say to each other."""
    if kind == SYNCED:
        return bool(message[0] == QUORUM)
    if kind == UNREACHABLE:
        kind = message.kind
    return VoteRequest.kind <= kind < OTHERS_FROM


class _VotersLog:
    """A voter's log as a broker follows it: the voter does all that there is to do."""

    __slots__ = ("_voter",)

    def __init__(self, voter: Voter) -> None:
        self._voter = voter

    @property
    def leader_id(self) -> int:
        """The node that leads; -1: not known."""
        return self._voter.leader_id

    @property
    def high_watermark(self) -> int:
        """The end offset of the records that are committed."""
        return self._voter.high_watermark

    @property
    def log(self) -> MetadataLog:
        """The voter's log."""
        return self._voter.log

    def start(self, now: int, contents: Contents, effects: Effects) -> None:
        """Do nothing."""

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Do nothing."""

    def tick(self, now: int, effects: Effects) -> None:
        """Do nothing."""

    def snapshot(
        self, end_offset: int, epoch: int, records: tuple[Any, ...], effects: Effects
    ) -> None:
        """Do nothing: the controller takes snapshots of the same log."""
