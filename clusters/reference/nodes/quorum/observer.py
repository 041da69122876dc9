"""An observer of the metadata quorum, as a broker holds it: it fetches, and has no vote.

It asks the voters in turn until one leads, or says who does. Its log need not be durable: nothing
is decided by what it has, and what it has not it fetches again. Its snapshots have to be, before
the log is cut below them.
"""

from typing import Any, Final, Protocol

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import SYNC, SYNCED, TICK, UNREACHABLE, Effects
from fencepost.clusters.node_port.storage import METADATA, SNAPSHOT, Contents, Snapshot
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.messages.quorum import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    MetadataFetchRequest,
    MetadataFetchResponse,
)
from fencepost.clusters.reference.nodes.quorum.epochs import is_refused
from fencepost.clusters.reference.nodes.quorum.fetching import Fetcher
from fencepost.clusters.reference.nodes.quorum.metadata_log import (
    ARRIVED,
    QUORUM,
    START,
    MetadataLog,
)
from fencepost.clusters.reference.nodes.quorum.snapshots import (
    BEGINS_ANEW,
    SnapshotCodec,
    SnapshotValues,
)
from fencepost.clusters.reference.nodes.rules import Rules

_FETCHES: Final = (MetadataFetchRequest.kind, FetchSnapshotRequest.kind)


class FollowedLog(Protocol):
    """The replica of the metadata log that a broker replays, whoever keeps it."""

    @property
    def leader_id(self) -> int:
        """The node that leads; -1: not known."""

    @property
    def high_watermark(self) -> int:
        """The end offset of the records that are committed."""

    @property
    def log(self) -> MetadataLog:
        """The log itself."""

    def start(self, now: int, contents: Contents, effects: Effects) -> None:
        """Take what the disk has."""

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Handle an event addressed to the observer."""

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due."""

    def snapshot(
        self, end_offset: int, epoch: int, records: tuple[Any, ...], effects: Effects
    ) -> None:
        """Store what the log adds up to below `end_offset`."""


class QuorumObserver:
    """A replica of the metadata log that follows whoever leads."""

    __slots__ = (
        "_alarm",
        "_configuration",
        "_fetcher",
        "_is_open",
        "_rules",
        "_tries",
        "epoch",
        "leader_id",
        "log",
    )

    def __init__(
        self,
        configuration: Configuration,
        rules: Rules,
        alarm: Alarm,
        *,
        snapshots: SnapshotCodec | None = None,
    ) -> None:
        self._alarm = alarm
        self._configuration = configuration
        self._rules = rules
        self._is_open = False
        self._tries = configuration.node_id
        """Counts the voters asked without success; not all observers begin with the same one."""
        self.epoch = -1
        """The highest one heard of; -1: none yet."""
        self.leader_id = -1
        """The node that answers as the leader, or was said to lead; -1: not known."""
        self.log = MetadataLog()
        codec = snapshots or SnapshotValues()
        self._fetcher = Fetcher(configuration, rules, log=self.log, alarm=alarm, codec=codec)

    @property
    def high_watermark(self) -> int:
        """The end offset of the records that are committed, and may be replayed."""
        return self.log.high_watermark

    def start(self, now: int, contents: Contents, effects: Effects) -> None:
        """Take what the disk has, and look for the leader once its snapshot is durable."""
        assert not self._is_open, now
        self.log.load(contents)
        if self.log.end:
            self.epoch = self.log.last_epoch
        effects.append((SYNC, (METADATA, SNAPSHOT), (QUORUM, START)))

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take a tick, a sync, a request that came back, or an answer of kind 17 or 19."""
        if kind == SYNCED:
            self._synced(now, message, effects)
        elif not self._is_open:
            return
        elif kind == TICK:
            self.tick(now, effects)
        elif kind == MetadataFetchResponse.kind:
            self._fetched(now, message, effects)
        elif kind == FetchSnapshotResponse.kind:
            self._snapshot_fetched(now, message, effects)
        elif kind == UNREACHABLE:
            self._came_back(now, message)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at the bound of the fetch under way, or of the pause; mostly it is not reached."""
        exchange = self._fetcher.exchange
        if not self._is_open:
            return
        if now >= exchange.due_at:
            if exchange.is_under_way:
                self._give_up(now)
            self._poll(now, effects)
        if not self._fetcher.is_receiving:
            self._alarm.by(exchange.due_at)

    def snapshot(
        self, end_offset: int, epoch: int, records: tuple[Any, ...], effects: Effects
    ) -> None:
        """Store what the log adds up to below `end_offset`, a batch's end, and begin there.

        Nothing happens while a snapshot of the leader's arrives, which goes further.
        """
        if not self._fetcher.is_receiving:
            snapshot = Snapshot(end_offset=end_offset, epoch=epoch, records=records)
            self.log.cut(snapshot, effects)

    def _synced(self, now: int, token: Any, effects: Effects) -> None:
        if token[0] != QUORUM:
            return
        if token[1] == START:
            self._is_open = True
            self.log.trim(self.log.start, effects)
            self._poll(now, effects)
        elif token[1] == SNAPSHOT:
            self.log.trim(token[2], effects)
        elif token[1] == ARRIVED and self._fetcher.arrived(token[2], effects):
            self._poll(now, effects)

    def _came_back(self, now: int, request: Any) -> None:
        if request.kind in _FETCHES and self._fetcher.came_back(now, request.correlation):
            self._give_up(now)

    def _poll(self, now: int, effects: Effects) -> None:
        voters = self._configuration.voters
        known = self.leader_id >= 0
        target = self.leader_id if known else voters[self._tries % len(voters)]
        self._fetcher.poll(now, target, self.epoch, effects)

    def _give_up(self, now: int) -> None:
        """Ask another voter after a pause."""
        self.leader_id = -1
        self._tries += 1
        self._fetcher.exchange.pause(now)

    def _fetched(self, now: int, response: MetadataFetchResponse, effects: Effects) -> None:
        if not self._is_leaders(now, response, effects):
            return
        self._fetcher.take(now, response, effects)
        self._poll(now, effects)

    def _snapshot_fetched(
        self, now: int, response: FetchSnapshotResponse, effects: Effects
    ) -> None:
        if response.error in BEGINS_ANEW:
            response = FetchSnapshotResponse(
                response.correlation, 0, response.epoch, response.leader_id
            )
        if self._is_leaders(now, response, effects):
            self._fetcher.take_snapshot(now, response, effects)
            self._poll(now, effects)

    def _is_leaders(
        self,
        now: int,
        response: MetadataFetchResponse | FetchSnapshotResponse,
        effects: Effects,
    ) -> bool:
        """Return whether this answers the last fetch, and by the leader; else ask whoever leads."""
        if not self._fetcher.exchange.is_answered(response.correlation):
            return False
        if is_refused(self._rules, response.epoch, own=self.epoch):
            self._give_up(now)
            return False
        leader_id = response.leader_id if response.leader_id in self._configuration.voters else -1
        is_news = response.epoch > self.epoch or self.leader_id < 0
        self.epoch = response.epoch
        if not response.error:
            self.leader_id = leader_id
            return True
        if leader_id < 0 or not is_news:
            self._give_up(now)
            return False
        # A leader named anew is asked at once; two voters that name each other are not, for ever.
        self._fetcher.forget()
        self.leader_id = leader_id
        self._poll(now, effects)
        return False
