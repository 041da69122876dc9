"""A broker of the KRaft generation: it replays the metadata log, and acts upon it."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from fencepost.clusters.node_port.effects import SYNCED, UNREACHABLE, Effects
from fencepost.clusters.node_port.storage import METADATA, Contents, PartitionKey, Snapshot
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.broker import BrokerNode, Handlers, end
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.formatted import unfit
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY
from fencepost.clusters.reference.nodes.life_cycle import LifeCycle
from fencepost.clusters.reference.nodes.messages import control, quorum
from fencepost.clusters.reference.nodes.quorum.observer import FollowedLog, QuorumObserver
from fencepost.clusters.reference.nodes.quorum.replay import Replayer
from fencepost.clusters.reference.nodes.quorum.snapshots import SnapshotCodec
from fencepost.clusters.reference.nodes.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from fencepost.clusters.reference.nodes.replicas.proposals import Proposals
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.nodes.serving.forwarding import Forwarding
from fencepost.clusters.reference.nodes.serving.groups import CommitCodec, CommitValues
from fencepost.clusters.reference.nodes.serving.producer_ids import ControllerBlocks, ProducerIds
from fencepost.clusters.reference.nodes.serving.server import Server
from fencepost.clusters.reference.nodes.serving.visibility import Visibility
from fencepost.clusters.reference.nodes.situation import Situation

_OF_QUORUM: Final = (quorum.MetadataFetchResponse.kind, quorum.FetchSnapshotResponse.kind)
_SELF: Final = -1
"""The source of what the observer is handed: it needs none."""

_Applied = list[tuple[int, int, MetadataRecord]]


def quorum_broker(
    configuration: Configuration,
    rules: Rules,
    *,
    codec: CommitCodec | None = None,
    snapshots: SnapshotCodec | None = None,
    log: FollowedLog | None = None,
) -> "BrokerNode[QuorumRegistrar]":
    """Return a broker of the KRaft generation.

    `codec` turns commits of groups' offsets into payloads of the kind that the shell stores,
    `snapshots` snapshots into what pieces are cut of. `log`: the metadata log that it replays;
    None: its own, which it fetches.
    """
    situation = Situation(configuration, rules)
    own = log or QuorumObserver(configuration, rules, situation.alarm, snapshots=snapshots)
    proposals = Proposals(situation)
    replicas, visibility = Replicas(situation, proposals), Visibility(situation)
    server = Server(
        situation,
        replicas,
        codec or CommitValues(),
        visibility=visibility,
        forwarding=Forwarding(situation),
        producer_ids=ProducerIds(situation, ControllerBlocks(situation)),
    )
    registrar = QuorumRegistrar(situation, replicas, server, visibility, own)
    isr = Handlers(
        answers={control.AlterPartitionResponse.kind: proposals.answered},
        lost={control.AlterPartitionRequest.kind: proposals.unreachable},
    )
    return BrokerNode(situation, replicas, server, registrar, isr=isr, follows_fenced=True)


class QuorumRegistrar:
    """A broker that registers with the quorum's leader, and replays the metadata log.

    A fenced broker serves followers: its metadata may be older than the decision that another
    broker leads, and they are told so by epochs.
    """

    __slots__ = (
        "_replayer",
        "_replicas",
        "_server",
        "_serves_anyway",
        "_situation",
        "_visibility",
        "handlers",
        "life",
        "observer",
    )

    def __init__(
        self,
        situation: Situation,
        replicas: Replicas,
        server: Server,
        visibility: Visibility,
        observer: FollowedLog,
    ) -> None:
        self._situation = situation
        self._replicas = replicas
        self._server = server
        self._visibility = visibility
        self.observer = observer
        self.life = LifeCycle(situation, self)
        # Rule fenced_serves_nobody.
        self._serves_anyway = not situation.rules.fenced_serves_nobody
        self._replayer = Replayer()
        self.handlers = Handlers(
            answers={
                control.BrokerRegistrationResponse.kind: self.life.registered,
                control.BrokerHeartbeatResponse.kind: self.life.heard,
                **{kind: partial(self._observe, kind) for kind in (SYNCED, *_OF_QUORUM)},
            },
            lost={
                control.BrokerRegistrationRequest.kind: self.life.unreachable,
                control.BrokerHeartbeatRequest.kind: self.life.unreachable,
                **{kind - 1: partial(self._observe, UNREACHABLE) for kind in _OF_QUORUM},
            },
        )

    def unfit(self, contents: Contents) -> str:
        """Return why the broker may not start on this disk; empty if it may."""
        # Rule format_required.
        is_required = self._situation.rules.format_required
        return unfit(contents, self._situation.configuration) if is_required else ""

    def start(self, now: int, contents: Contents, effects: Effects, *, is_unclean: bool) -> None:
        """Begin; after a crash the logs are `recovered` first."""
        self.observer.start(now, contents, effects)
        self.life.start(now, is_unclean=is_unclean, effects=effects)
        self._observed(now, effects)

    def recovered(self, now: int, effects: Effects) -> None:
        """The logs are recovered."""
        self.life.recovered(now, effects)
        self._replicas.applied(now, (), whole=True, effects=effects)

    def stop(self, now: int, effects: Effects) -> None:
        """The operating system asks the broker to end."""
        self.life.stop(now, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due."""
        self.observer.tick(now, effects)
        self._situation.controller_id = self.observer.leader_id
        self.life.tick(now, effects)

    def overdue(self, now: int, effects: Effects) -> None:
        """The lease is over."""
        self.life.look_at_lease(now, effects)

    def may_be_forgotten(self) -> bool:
        """Return whether the controller may already have dropped this broker, which is leaving.

        The answer that says so may still be in flight. Raising the level does not wait for such a
        broker, so what counts is the highest level it knows, not the one it has applied.
        """
        is_leaving = self.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN
        return is_leaving and self._situation.configuration.level_max >= LEVEL_VISIBILITY

    def moved(self, now: int, effects: Effects) -> None:
        """Go on with the log, which something else than this broker may have moved."""
        if not self._situation.is_over:
            self._observed(now, effects)

    # Calls of the life cycle.

    def fenced(self, effects: Effects) -> None:
        """Serve no client from here on, nor those that wait."""
        if not self._serves_anyway:
            self._server.close(effects)

    def ended(self, reason: str, effects: Effects) -> None:
        """The life is over; an empty reason is a clean end."""
        end(self._situation, self._replicas, METADATA, reason, effects)

    def told_lowest(self, offset: int, effects: Effects) -> None:
        """The controller named the lowest acknowledged offset."""
        if self._visibility.told_lowest(offset, effects):
            self._server.shown(effects)
        self.life.is_behind = self._visibility.is_behind

    def _observe(self, kind: int, now: int, message: Any, effects: Effects) -> None:
        self.observer.handle(now, _SELF, kind, message, effects)
        self._observed(now, effects)

    def _observed(self, now: int, effects: Effects) -> None:
        """The observer has moved: perhaps there is another leader, or more is committed."""
        observer, situation = self.observer, self._situation
        if situation.controller_id != observer.leader_id:
            situation.controller_id = observer.leader_id
            situation.alarm.by(now)  # whatever waits for a controller goes out with the next tick
            self.life.speak(now, effects)
        if observer.high_watermark > situation.image.offset:
            self._replay(now, effects)

    def _replay(self, now: int, effects: Effects) -> None:
        replayer, situation, log = self._replayer, self._situation, self.observer.log
        records = replayer.advance(log, self.observer.high_watermark)
        snapshot = _image_of(log.latest_snapshot) if replayer.rebuilt else None
        if not records and snapshot is None:
            return
        situation.image = replayer.image
        situation.level = replayer.image.level
        keys = _changed(records, self._replicas.hosted)
        self._replicas.applied(now, keys, whole=replayer.rebuilt, effects=effects)
        if snapshot is not None or any(isinstance(one, ConfigRecord) for _, _, one in records):
            self._replicas.configured()
        self._visibility.applied(snapshot, records, effects)
        self._server.shown(effects)
        self.life.is_behind = self._visibility.is_behind
        self.life.applied(now, effects)
        self._snapshot(effects)

    def _snapshot(self, effects: Effects) -> None:
        image, log = self._situation.image, self.observer.log
        if image.offset - log.start >= self._situation.configuration.metadata_snapshot_records:
            self.observer.snapshot(image.offset, image.epoch, image.records(), effects)


def _image_of(snapshot: Snapshot | None) -> MetadataImage | None:
    """A second image of a snapshot: the one that is applied runs ahead of the one that is shown."""
    if snapshot is None:
        return None
    return MetadataImage.of_snapshot(
        snapshot.records, end_offset=snapshot.end_offset, epoch=snapshot.epoch
    )


def _changed(records: _Applied, hosted: Iterable[PartitionKey]) -> list[PartitionKey]:
    """The partitions that records change, those that are hosted here of a deleted topic."""
    keys: dict[PartitionKey, None] = {}
    for _, _, record in records:
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            keys[record.topic_id, record.partition] = None
        elif isinstance(record, RemoveTopicRecord):
            keys.update((key, None) for key in hosted if key[0] == record.topic_id)
    return list(keys)
