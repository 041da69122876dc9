"""A voter of the metadata quorum, as a controller holds it.

`quorum_state.py` is its state machine, `quorum_requests.py` handles its messages. After a kill the
process may find data on its disk that are not durable yet, such as a vote. So it sends and answers
nothing before a sync, and closes requests that come earlier.
"""

from typing import Any

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import (
    CLOSE,
    SYNC,
    SYNCED,
    TICK,
    UNREACHABLE,
    Effects,
)
from fencepost.clusters.node_port.storage import (
    METADATA,
    QUORUM_STATE,
    SNAPSHOT,
    Contents,
    Snapshot,
)
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.quorum.metadata_log import (
    ARRIVED,
    QUORUM,
    START,
    MetadataLog,
)
from fencepost.clusters.reference.nodes.quorum.quorum_requests import QuorumRequests
from fencepost.clusters.reference.nodes.quorum.quorum_state import QuorumStateMachine
from fencepost.clusters.reference.nodes.quorum.snapshots import (
    Pieces,
    SnapshotCodec,
    SnapshotValues,
)
from fencepost.clusters.reference.nodes.quorum.transitions import VoterState
from fencepost.clusters.reference.nodes.rules import Rules


class Voter:
    """One of the voters that the configuration names."""

    __slots__ = ("_is_open", "_quorum", "_requests", "log")

    def __init__(
        self,
        configuration: Configuration,
        rules: Rules,
        alarm: Alarm,
        *,
        snapshots: SnapshotCodec | None = None,
    ) -> None:
        codec = snapshots or SnapshotValues()
        self._quorum = QuorumStateMachine(configuration, rules, alarm, snapshots=codec)
        self._requests = QuorumRequests(
            self._quorum, rules, pieces=Pieces(codec), piece_max=configuration.snapshot_piece_max
        )
        self._is_open = False
        self.log: MetadataLog = self._quorum.log

    @property
    def epoch(self) -> int:
        """The highest epoch of the quorum that it knows of."""
        return self._quorum.epoch

    @property
    def leader_id(self) -> int:
        """The id of the leader in this epoch; -1: not known."""
        return self._quorum.leader_id

    @property
    def is_leader(self) -> bool:
        """True if this voter leads."""
        return self._quorum.leadership is not None

    @property
    def epoch_start(self) -> int:
        """The offset of the leader's LeaderChangeMessage; -1: this voter does not lead."""
        leadership = self._quorum.leadership
        return -1 if leadership is None else leadership.epoch_start

    @property
    def high_watermark(self) -> int:
        """The end offset of the records that are committed."""
        return self.log.high_watermark

    @property
    def state(self) -> VoterState:
        """The state that it is in, in an election."""
        return self._quorum.state

    def start(self, now: int, contents: Contents, effects: Effects) -> None:
        """Take what the disk has. A process that was killed may not have made it durable."""
        assert not self._is_open, now
        self._quorum.load(contents)
        names = (METADATA, QUORUM_STATE, SNAPSHOT)
        effects.append((SYNC, names, (QUORUM, START)))

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take a tick, a sync, a request that came back, or a message of kinds 10 to 19 and 42."""
        if kind == SYNCED:
            self._synced(now, message, effects)
        elif not self._is_open:
            if kind % 2 == 0 and kind in self._requests.takes:
                effects.append((CLOSE, source))
        elif kind == TICK:
            self._quorum.tick(now, effects)
        elif kind == UNREACHABLE:
            if message.kind in self._requests.takes:
                self._quorum.came_back(now, message)
        else:
            take = self._requests.takes.get(kind)
            if take is not None:
                take(now, source, message, effects)

    def look(self, now: int, effects: Effects) -> None:
        """Lead no more, if it does and has no majority any more."""
        if self._is_open:
            self._quorum.look(now, effects)

    def append(self, now: int, records: tuple[Any, ...], effects: Effects) -> int:
        """Append one batch as the leader; return its end offset."""
        return self._quorum.append(now, records, effects)

    def resign(self, now: int, effects: Effects) -> None:
        """Lead no more, if it does, and say who should stand first."""
        self._quorum.resign(now, effects)

    def snapshot(
        self, end_offset: int, epoch: int, records: tuple[Any, ...], effects: Effects
    ) -> None:
        """Store what the log adds up to below `end_offset`, a batch's end, and begin there.

        Nothing happens while a snapshot of the leader's arrives, which goes further.
        """
        if not self._quorum.fetcher.is_receiving:
            snapshot = Snapshot(end_offset=end_offset, epoch=epoch, records=records)
            self.log.cut(snapshot, effects)

    def _synced(self, now: int, token: Any, effects: Effects) -> None:
        if token[0] != QUORUM:
            return
        quorum, what = self._quorum, token[1]
        if what == START:
            self._is_open = True
            quorum.open(now, effects)
        elif what == METADATA:
            quorum.synced(now, token[2], token[3], effects)
        elif what == QUORUM_STATE:
            quorum.promises.keep(token[2], effects)
            quorum.campaign(now, effects)
        elif what == SNAPSHOT:
            self.log.trim(token[2], effects)
        elif what == ARRIVED and quorum.fetcher.arrived(token[2], effects):
            quorum.settle(now, effects)
