"""The fetching side of the quorum: a log that follows its leader's, of a voter or an observer.

What is fetched has to fit: a batch that does not begin where the log ends is not taken. A leader
that finds the logs apart says up to where it has the fetcher's last epoch, and the fetcher cuts its
log to what both can share; round by round they meet (KIP-595). Records that the leader has dropped
come as a snapshot (KIP-630), which is durable before the log begins at it. It comes in pieces: one
that was lost is asked for again, and what another leader sends begins with the first one.
"""

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import SEND, SYNC, WRITE, Effects
from fencepost.clusters.node_port.storage import SNAPSHOT, Snapshot
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.messages.quorum import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    MetadataFetchRequest,
    MetadataFetchResponse,
)
from fencepost.clusters.reference.nodes.quorum.exchange import Exchange
from fencepost.clusters.reference.nodes.quorum.metadata_log import ARRIVED, QUORUM, MetadataLog
from fencepost.clusters.reference.nodes.quorum.snapshots import Download, SnapshotCodec
from fencepost.clusters.reference.nodes.rules import Rules


class Fetcher:
    """Asks whoever it is told to ask, one request at a time."""

    __slots__ = (
        "_arrivals",
        "_arriving",
        "_codec",
        "_configuration",
        "_correlation",
        "_download",
        "_is_voter",
        "_log",
        "_rules",
        "exchange",
    )

    def __init__(
        self,
        configuration: Configuration,
        rules: Rules,
        *,
        log: MetadataLog,
        alarm: Alarm,
        codec: SnapshotCodec,
    ) -> None:
        self._codec = codec
        self._configuration = configuration
        self._is_voter = configuration.is_controller
        self._rules = rules
        self._log = log
        self._correlation = 0
        self._download: Download | None = None
        """The snapshot to fetch before any records."""
        self._arriving: Snapshot | None = None
        """A snapshot that is not durable yet."""
        self._arrivals = 0
        self.exchange = Exchange(configuration, alarm)

    @property
    def is_receiving(self) -> bool:
        """Return whether a leader's snapshot is in the file, and the log still begins before it."""
        return self._arriving is not None

    def forget(self) -> None:
        """Forget what was asked before: another leader answers from here on."""
        self._download = None
        self._arriving = None
        self.exchange.forget()

    def poll(self, now: int, target: int, epoch: int, effects: Effects) -> None:
        """Ask, if nothing is under way and no pause is on."""
        if now < self.exchange.due_at or self._arriving is not None:
            return
        self._correlation += 1
        if self._download is None:
            effects.append((SEND, target, self._fetch(epoch)))
            self.exchange.sent(self._correlation, now + self._patience_ns)
        else:
            effects.append((SEND, target, self._fetch_snapshot(epoch, self._download)))
            bound = self._configuration.quorum_request_timeout_ns
            self.exchange.sent(self._correlation, now + bound)

    def came_back(self, now: int, correlation: int) -> bool:
        """A request did not reach its target, or its answer does not come; whether it counts."""
        if not self.exchange.is_answered(correlation):
            return False
        self.exchange.pause(now)
        return True

    def take(self, now: int, response: MetadataFetchResponse, effects: Effects) -> None:
        """Follow what the leader says: truncate, want its snapshot, or append.

        The high watermark counts with an answer of records alone, or of none: by it alone the
        leader says that it has what this log ends with.
        """
        end = self._log.end
        if response.diverging_end_offset >= 0:
            self._truncate(response.diverging_epoch, response.diverging_end_offset, effects)
        elif response.snapshot_end_offset >= 0:
            self._download = Download(
                response.snapshot_end_offset, response.snapshot_epoch, leader_epoch=response.epoch
            )
        else:
            for batch in response.batches:
                if batch.base_offset == self._log.end:
                    self._log.append(batch, effects)
            self._committed(response.high_watermark, effects)
        asked_in_vain = response.batches or response.diverging_end_offset >= 0
        if asked_in_vain and self._log.end == end:
            self.exchange.pause(now)
        else:
            self.exchange.succeed()

    def take_snapshot(self, now: int, response: FetchSnapshotResponse, effects: Effects) -> None:
        """Take a piece of the leader's snapshot; store it with the last one.

        What cannot be used, or what the log has gone past, is dropped: a fetch says what there is.
        """
        download, self._download = self._download, None
        if download is None or not download.take(response):
            self.exchange.pause(now)
            return
        if download.position < response.size:
            self._download = download
            self.exchange.succeed()
            return
        snapshot = self._codec.decoded(
            download.data, end_offset=download.end_offset, epoch=download.epoch
        )
        if snapshot is None or snapshot.end_offset <= self._log.start:
            self.exchange.pause(now)
            return
        self._arriving = snapshot
        self._arrivals += 1
        effects.append((WRITE, SNAPSHOT, snapshot))
        effects.append((SYNC, (SNAPSHOT,), (QUORUM, ARRIVED, self._arrivals)))

    def arrived(self, number: int, effects: Effects) -> bool:
        """The snapshot of this number is durable; whether the log begins at it now."""
        snapshot = self._arriving
        if snapshot is None or number != self._arrivals:
            return False
        self._arriving = None
        self._log.replace(snapshot, effects)
        self._log.commit(snapshot.end_offset, effects)
        return True

    def _committed(self, high_watermark: int, effects: Effects) -> None:
        # Rule replay_committed_only.
        if self._is_voter or self._rules.replay_committed_only:
            self._log.commit(min(high_watermark, self._log.end), effects)
        else:
            self._log.commit(self._log.end, effects)

    @property
    def _patience_ns(self) -> int:
        """A fetch that vanished is repeated well before the leader is given up."""
        configuration = self._configuration
        return min(
            configuration.quorum_request_timeout_ns,
            configuration.metadata_max_wait_ns + configuration.quorum_fetch_timeout_ns // 4,
        )

    def _fetch(self, epoch: int) -> MetadataFetchRequest:
        return MetadataFetchRequest(
            correlation=self._correlation,
            replica_id=self._configuration.node_id,
            epoch=epoch,
            fetch_offset=self._log.end,
            last_fetched_epoch=self._log.last_epoch,
            max_wait_ns=self._configuration.metadata_max_wait_ns,
            is_voter=self._is_voter,
        )

    def _fetch_snapshot(self, epoch: int, download: Download) -> FetchSnapshotRequest:
        return FetchSnapshotRequest(
            correlation=self._correlation,
            replica_id=self._configuration.node_id,
            epoch=epoch,
            end_offset=download.end_offset,
            snapshot_epoch=download.epoch,
            position=download.position,
            size_max=self._configuration.snapshot_piece_max,
        )

    def _truncate(self, epoch: int, end: int, effects: Effects) -> None:
        # Neither log has the other's records above either of the two ends.
        self._log.truncate(min(end, self._log.end_of(epoch)[1]), effects)
