"""A controller: a voter of the metadata quorum, an image of what it decided, and who decides next.

Every controller replays the log as it is committed, so that the one that is elected knows all; the
elected one also decides (`control.active`). From time to time each takes a snapshot of its image
and cuts its own log.

Source: KIP-595, KIP-630, KIP-631.
"""

from typing import Any, Final

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import CLOSE, EXIT, START, STOP, TICK, Effects
from fencepost.clusters.node_port.storage import Contents
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.control.active import REQUESTS, ActiveController
from fencepost.clusters.reference.nodes.formatted import unfit
from fencepost.clusters.reference.nodes.messages.control import DescribeQuorumRequest
from fencepost.clusters.reference.nodes.quorum.replay import Replayer
from fencepost.clusters.reference.nodes.quorum.snapshots import SnapshotCodec
from fencepost.clusters.reference.nodes.quorum.voter import Voter
from fencepost.clusters.reference.nodes.rules import Rules

OTHERS_FROM: Final = 20
"""Below are events, and what voters say to each other."""
_NOT_FOR_OTHERS: Final = "a controller is one of the voters"


class ControllerNode:
    """The whole controller, as its shell drives it."""

    __slots__ = (
        "_active",
        "_configuration",
        "_ended",
        "_replayer",
        "_rules",
        "_voter",
        "alarm",
    )

    def __init__(
        self, configuration: Configuration, rules: Rules, *, snapshots: SnapshotCodec | None = None
    ) -> None:
        assert configuration.node_id in configuration.voters, _NOT_FOR_OTHERS
        self._configuration = configuration
        self._rules = rules
        self.alarm = Alarm()
        self._voter = Voter(configuration, rules, self.alarm, snapshots=snapshots)
        self._replayer = Replayer()
        self._active = ActiveController(
            configuration, rules, voter=self._voter, replayer=self._replayer, alarm=self.alarm
        )
        self._ended = False

    @property
    def voter(self) -> Voter:
        """The voter that it is."""
        return self._voter

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event; append what is to be done to `effects`."""
        if self._ended:
            return
        if kind == TICK:
            self.alarm.reset()
        # Messages that waited while it stood still find no leader that lost its majority meanwhile.
        self._voter.look(now, effects)
        if kind in REQUESTS:
            self._active.handle(now, source, message, effects)
        elif kind == STOP:
            self._stop(now, effects)
            return
        elif kind == START:
            self._start(now, message, effects)
        elif kind < OTHERS_FROM or kind == DescribeQuorumRequest.kind:
            self._voter.handle(now, source, kind, message, effects)
            if kind == TICK:
                self._active.tick(now, effects)
        elif kind % 2 == 0:
            # A request that only brokers are asked.
            effects.append((CLOSE, source))
        self._settle(now, effects)

    def _start(self, now: int, contents: Contents, effects: Effects) -> None:
        # Rule format_required.
        words = unfit(contents, self._configuration) if self._rules.format_required else ""
        if words:
            self._ended = True
            effects.append((EXIT, words))
            return
        self._voter.start(now, contents, effects)

    def _settle(self, now: int, effects: Effects) -> None:
        """Replay what is committed and go on from there, as long as it leads anywhere."""
        self._replay(now, effects)
        while self._active.settle(now, effects):
            self._replay(now, effects)

    def _replay(self, now: int, effects: Effects) -> None:
        voter, replayer = self._voter, self._replayer
        if voter.high_watermark <= replayer.image.offset:
            return
        self._active.replayed(now, replayer.advance(voter.log, voter.high_watermark))
        image = replayer.image
        if image.offset - voter.log.start >= self._configuration.metadata_snapshot_records:
            voter.snapshot(image.offset, image.epoch, image.records(), effects)

    def _stop(self, now: int, effects: Effects) -> None:
        """Let another voter lead, without waiting for it, and end."""
        self._ended = True
        if self._voter.is_leader:
            self._voter.resign(now, effects)
        self._active.abandon(effects)
        effects.append((EXIT, ""))
