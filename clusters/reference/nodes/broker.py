"""A broker: its replay of the metadata, its life cycle, its replicas, and what it answers.

Events are branched by how frequent they are. What a fenced broker does not answer is refused here,
in one place; followers are served by who leads, fenced or not, since its metadata may be older than
the decision that another broker leads, and is told so by epochs.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from clusters.node_port.alarm import Alarm
from clusters.node_port.effects import (
    CLOSE,
    EXIT,
    RECOVER,
    RECOVERED,
    START,
    STOP,
    SYNCED,
    TICK,
    UNREACHABLE,
    WRITE,
    Effects,
)
from clusters.node_port.storage import (
    CLEAN_STOP,
    METADATA,
    Contents,
    PartitionKey,
    Snapshot,
)
from clusters.reference.nodes.configuration import Configuration
from clusters.reference.nodes.formatted import unfit
from clusters.reference.nodes.image import MetadataImage
from clusters.reference.nodes.levels import LEVEL_VISIBILITY
from clusters.reference.nodes.life_cycle import LifeCycle
from clusters.reference.nodes.messages import client, control, data, quorum
from clusters.reference.nodes.quorum.observer import FollowedLog, QuorumObserver
from clusters.reference.nodes.quorum.replay import Replayer
from clusters.reference.nodes.quorum.snapshots import SnapshotCodec
from clusters.reference.nodes.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from clusters.reference.nodes.replicas.proposals import Proposals
from clusters.reference.nodes.replicas.replicas import Replicas
from clusters.reference.nodes.rules import Rules
from clusters.reference.nodes.serving.forwarding import Forwarding
from clusters.reference.nodes.serving.groups import CommitCodec, CommitValues
from clusters.reference.nodes.serving.producer_ids import ControllerBlocks, ProducerIds
from clusters.reference.nodes.serving.server import Server
from clusters.reference.nodes.serving.visibility import Visibility
from clusters.reference.nodes.situation import Situation
from clusters.reference.nodes.states import BrokerState

__all__ = ["BrokerNode"]

_FETCH: Final = data.FetchRequest.kind
_FETCHED: Final = data.FetchResponse.kind
_VERSIONS: Final = client.ApiVersionsRequest.kind
_PRODUCE: Final = data.ProduceRequest.kind
_OF_QUORUM: Final = (
    SYNCED,
    quorum.MetadataFetchResponse.kind,
    quorum.FetchSnapshotResponse.kind,
)
_OF_LIFE: Final = (
    control.BrokerRegistrationRequest.kind,
    control.BrokerHeartbeatRequest.kind,
)
_READS: Final = frozenset(
    {
        client.MetadataRequest.kind,
        client.DescribeConfigsRequest.kind,
        client.ApiVersionsRequest.kind,
    }
)
"""The requests that show metadata."""
_BROKER: Final = "broker"
"""The first element of this module's sync tokens; the second is why the process ends."""

_Applied = list[tuple[int, int, MetadataRecord]]


class BrokerNode:
    """A broker, to be driven as `effects.Node` says.

    `codec` turns commits of groups' offsets into payloads of the kind that the shell stores,
    `snapshots` snapshots into what pieces are cut of. `log`: the metadata log that it replays;
    None: its own, which it fetches.
    """

    __slots__ = (
        "_consume",
        "_fetched",
        "_follow",
        "_is_over",
        "_produce",
        "_proposals",
        "_replayer",
        "_responses",
        "_serves_anyway",
        "_sources",
        "alarm",
        "life",
        "observer",
        "replicas",
        "server",
        "situation",
        "visibility",
    )

    def __init__(
        self,
        configuration: Configuration,
        rules: Rules,
        *,
        codec: CommitCodec | None = None,
        snapshots: SnapshotCodec | None = None,
        log: FollowedLog | None = None,
    ) -> None:
        self.situation = Situation(configuration, rules)
        self.alarm: Alarm = self.situation.alarm
        self.observer: FollowedLog = log or QuorumObserver(
            configuration, rules, self.alarm, snapshots=snapshots
        )
        self._proposals = Proposals(self.situation)
        self.replicas = Replicas(self.situation, self._proposals)
        self.visibility = Visibility(self.situation)
        self.server = Server(
            self.situation,
            self.replicas,
            codec or CommitValues(),
            visibility=self.visibility,
            forwarding=Forwarding(self.situation),
            producer_ids=ProducerIds(self.situation, ControllerBlocks(self.situation)),
        )
        self.life = LifeCycle(self.situation, self)
        # Rule fenced_serves_nobody.
        self._serves_anyway = not rules.fenced_serves_nobody
        self._replayer = Replayer()
        self._is_over = False
        self._sources = self.server.clients.sources
        self._fetched = self.replicas.fetchers.fetched
        self._follow = self.server.fetching.follow
        self._consume = self.server.fetching.consume
        self._produce = self.server.producing.produce
        self._responses: Mapping[int, Any] = {
            control.BrokerRegistrationResponse.kind: self.life.registered,
            control.BrokerHeartbeatResponse.kind: self.life.heard,
            control.AlterPartitionResponse.kind: self._proposals.answered,
        }

    @property
    def image(self) -> MetadataImage:
        """The metadata that this broker has applied, and acts upon."""
        return self.situation.image

    @property
    def visible(self) -> MetadataImage:
        """The metadata that clients see."""
        return self.visibility.image

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event; append what is to be done to `effects`."""
        if now >= self.life.serves_until_ns > 0:
            # After a pause this is the first thing to be seen: who waits is answered no more.
            self.life.look_at_lease(now, effects)
        if self._is_over:
            self._finish(kind, message, effects)
        elif kind == _FETCHED:
            self._fetched(now, message, effects)
        elif kind == _FETCH and message.replica_id >= 0:
            self._follow(now, source, message, effects)
        elif kind == _PRODUCE and now < self.life.serves_until_ns and source in self._sources:
            self._produce(now, source, message, effects)
        elif kind == TICK:
            self._tick(now, effects)
        elif kind > STOP and kind % 2 == 0:
            self._request(now, source, kind, message, effects)
        else:
            self._rarer(now, source, kind, message, effects)

    def moved(self, now: int, effects: Effects) -> None:
        """Go on with the log, which something else than this broker may have moved."""
        if not self._is_over:
            self._observed(now, effects)

    def fenced(self, effects: Effects) -> None:
        """Serve no client from here on, nor those that wait."""
        if not self._serves_anyway:
            self.server.close(effects)

    def ended(self, reason: str, effects: Effects) -> None:
        """The life is over: what the disk needs for a clean start is made durable, then EXIT."""
        self._is_over = True
        self.replicas.close(METADATA, (_BROKER, reason), effects)

    def told_lowest(self, offset: int, effects: Effects) -> None:
        """The controller named the lowest acknowledged offset."""
        if self.visibility.told_lowest(offset, effects):
            self.server.shown(effects)
        self.life.is_behind = self.visibility.is_behind

    def _finish(self, kind: int, message: Any, effects: Effects) -> None:
        if kind == SYNCED and message[0] == _BROKER:
            effects.append((EXIT, message[1]))

    def _request(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """A client asks, or another broker what it may ask."""
        if kind == _VERSIONS and message.by_node:
            self.server.negotiate(source, message, effects)
            return
        if now >= self.life.serves_until_ns and not self._serves_anyway:
            effects.append((CLOSE, source))
            return
        if kind in _READS and self._may_be_gone():
            effects.append((CLOSE, source))
            return
        if source not in self._sources:
            self.server.clients.add(source)
        if kind == _PRODUCE:
            self._produce(now, source, message, effects)
        elif kind == _FETCH:
            self._consume(now, source, message, effects)
        else:
            self.server.request(now, source, kind, message, effects)

    def _may_be_gone(self) -> bool:
        """It takes its leave: who let it go counts it no more, and its word may be on the way.

        Nor would it be waited for when the level is raised meanwhile, so what counts is which level
        it knows, and not which one it has applied.
        """
        is_leaving = self.life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN
        return is_leaving and self.situation.configuration.level_max >= LEVEL_VISIBILITY

    def _tick(self, now: int, effects: Effects) -> None:
        self.alarm.reset()
        self.observer.tick(now, effects)
        self.situation.controller_id = self.observer.leader_id
        self.life.tick(now, effects)
        if not self._is_over:
            self.replicas.tick(now, effects)
            self.server.tick(now, effects)

    def _rarer(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Responses but those to fetches, and events but ticks."""
        handler = self._responses.get(kind)
        if handler is not None:
            handler(now, message, effects)
        elif kind in _OF_QUORUM:
            self.observer.handle(now, source, kind, message, effects)
            self._observed(now, effects)
        elif kind == UNREACHABLE:
            self._unreachable(now, source, message, effects)
        elif kind == START:
            self._start(now, message, effects)
        elif kind == STOP:
            self.life.stop(now, effects)
        elif kind == RECOVERED:
            self.replicas.load(message)
            self.alarm.by(now)  # what replicas do from time to time begins with the next tick
            self.life.recovered(now, effects)
            self.replicas.applied(now, (), whole=True, effects=effects)
        else:
            self.server.answered(now, kind, message, effects)

    def _start(self, now: int, contents: Contents, effects: Effects) -> None:
        configuration, rules = self.situation.configuration, self.situation.rules
        # Rule format_required.
        words = unfit(contents, configuration) if rules.format_required else ""
        if words:
            self._is_over = True
            effects.append((EXIT, words))
            return
        self.situation.incarnation_id = contents.incarnation_id
        is_used = bool(contents.logs or contents.topics)
        is_unclean = is_used and not contents.files.get(CLEAN_STOP, False)
        effects.append((WRITE, CLEAN_STOP, False))
        if is_unclean:
            effects.append((RECOVER,))
        else:
            self.replicas.load(contents)
        self.observer.start(now, contents, effects)
        self.life.start(now, is_unclean=is_unclean, effects=effects)
        self._observed(now, effects)

    def _unreachable(self, now: int, source: int, request: Any, effects: Effects) -> None:
        """A request came back; whether it had arrived is not known."""
        kind = request.kind
        if kind == _FETCH:
            self.replicas.fetchers.unreachable(now, request)
        elif kind in _OF_LIFE:
            self.life.unreachable(now, request)
        elif kind == control.AlterPartitionRequest.kind:
            self._proposals.unreachable(now, request)
        elif kind + 1 in _OF_QUORUM:
            self.observer.handle(now, source, UNREACHABLE, request, effects)
            self._observed(now, effects)
        else:
            self.server.unreachable(now, request, effects)

    def _observed(self, now: int, effects: Effects) -> None:
        """The observer has moved: perhaps there is another leader, or more is committed."""
        observer, situation = self.observer, self.situation
        if situation.controller_id != observer.leader_id:
            situation.controller_id = observer.leader_id
            self.alarm.by(now)  # whatever waits for a controller goes out with the next tick
            self.life.speak(now, effects)
        if observer.high_watermark > situation.image.offset:
            self._replay(now, effects)

    def _replay(self, now: int, effects: Effects) -> None:
        replayer, situation, log = self._replayer, self.situation, self.observer.log
        records = replayer.advance(log, self.observer.high_watermark)
        snapshot = _image_of(log.latest_snapshot) if replayer.rebuilt else None
        if not records and snapshot is None:
            return
        situation.image = replayer.image
        situation.level = replayer.image.level
        keys = _changed(records, self.replicas.hosted)
        self.replicas.applied(now, keys, whole=replayer.rebuilt, effects=effects)
        if snapshot is not None or any(isinstance(one, ConfigRecord) for _, _, one in records):
            self.replicas.configured()
        self.visibility.applied(snapshot, records, effects)
        self.server.shown(effects)
        self.life.is_behind = self.visibility.is_behind
        self.life.applied(now, effects)
        self._snapshot(effects)

    def _snapshot(self, effects: Effects) -> None:
        image, log = self.situation.image, self.observer.log
        if image.offset - log.start >= self.situation.configuration.metadata_snapshot_records:
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
