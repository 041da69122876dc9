"""The replicas of a broker, and which of them it leads or follows, by the metadata it has applied.

A broker takes no role before its metadata has passed its own registration: what an earlier process
of it was, older records say, and nothing is known of the disk that it had. Nor does it while its
logs are being recovered.
"""

from collections.abc import Iterable
from typing import Final

from fencepost.clusters.node_port.effects import CREATE, DELETE, NOTE, SYNC, WRITE, Effects
from fencepost.clusters.node_port.notes import FOLLOWS, LEADS
from fencepost.clusters.node_port.storage import (
    CLEAN_STOP,
    HIGH_WATERMARKS,
    Contents,
    LogName,
    PartitionKey,
)
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.replicas.fetchers import Fetchers
from fencepost.clusters.reference.nodes.replicas.leader import Leader
from fencepost.clusters.reference.nodes.replicas.log import PartitionLog
from fencepost.clusters.reference.nodes.replicas.producers import ProducerStates
from fencepost.clusters.reference.nodes.replicas.proposals import IsrProposals
from fencepost.clusters.reference.nodes.replicas.waiting import ParkedFetches
from fencepost.clusters.reference.nodes.situation import Situation

_NOBODY: Final = (-1, -1)


class Replica:
    """A partition's replica on this broker's disk."""

    __slots__ = ("log", "producers", "role", "topic")

    def __init__(self, log: PartitionLog, topic: str) -> None:
        self.log = log
        self.topic = topic
        """The topic's name."""
        self.producers = ProducerStates()
        self.role = _NOBODY
        """(leader id, leader epoch) that it leads or follows under."""


class Replicas:
    """The replicas of a broker."""

    __slots__ = (
        "_checkpoint",
        "_checkpoint_due_ns",
        "_may_have_roles",
        "_shrink_due_ns",
        "_situation",
        "are_loaded",
        "fetchers",
        "fetches",
        "hosted",
        "leaders",
        "proposals",
    )

    def __init__(self, situation: Situation, proposals: IsrProposals) -> None:
        self._situation = situation
        self.hosted: dict[PartitionKey, Replica] = {}
        self.leaders: dict[PartitionKey, Leader] = {}
        self.fetches = ParkedFetches(self.leaders, situation.alarm)
        self.fetchers = Fetchers(situation)
        self.proposals = proposals
        self.are_loaded = False
        """True once the logs on the disk are known."""
        self._may_have_roles = False
        self._checkpoint: tuple[tuple[PartitionKey, int], ...] = ()
        self._checkpoint_due_ns = 0
        self._shrink_due_ns = 0

    def load(self, contents: Contents) -> None:
        """Take the logs as the disk has them; what was committed of them, the checkpoint says."""
        self.are_loaded = True
        self._checkpoint = contents.files.get(HIGH_WATERMARKS, ())
        marks = dict(self._checkpoint)
        for key, batches in contents.logs.items():
            if not isinstance(key, str):
                log = PartitionLog(key, batches, marks.get(key, 0))
                self.hosted[key] = Replica(log, contents.topics.get(key, ""))

    def applied(
        self, now: int, keys: Iterable[PartitionKey], *, whole: bool, effects: Effects
    ) -> None:
        """The image has changed in these partitions, or as a whole."""
        if not self.are_loaded:
            return
        if not self._may_have_roles and self._situation.own_registration() is not None:
            self._may_have_roles = whole = True
            self._situation.fetch_level = self._situation.level
            self._delete_strays(effects)
        # Rule role_after_registration.
        if not self._may_have_roles and self._situation.rules.role_after_registration:
            return
        image = self._situation.image
        for key in (*image.partitions, *self.hosted) if whole else keys:
            topic = image.names.get(key[0], "")
            self.take_role(now, key, topic, image.partitions.get(key), effects)
        self.fetchers.send(now, effects)

    def configured(self) -> None:
        """Settings have changed."""
        for key, leader in self.leaders.items():
            leader.min_isr = self._situation.min_insync_replicas(self.hosted[key].topic)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due."""
        if not self.are_loaded:
            return
        self.fetchers.tick(now, effects)
        self.proposals.tick(now, effects)
        if now >= self._shrink_due_ns:
            self._shrink(now, effects)
        if now >= self._checkpoint_due_ns:
            self._checkpoint_due_ns = now + self._situation.configuration.checkpoint_interval_ns
            self.checkpoint(effects)
        self._situation.alarm.by(min(self._shrink_due_ns, self._checkpoint_due_ns))

    def checkpoint(self, effects: Effects) -> None:
        """Write the high watermarks down, if they have changed."""
        marks = tuple((key, one.log.high_watermark) for key, one in self.hosted.items())
        if marks != self._checkpoint:
            self._checkpoint = marks
            effects.append((WRITE, HIGH_WATERMARKS, marks))

    def close(self, also: LogName, token: object, effects: Effects) -> None:
        """Make durable what the disk needs for a clean start, and `also`.

        Logs that are not recovered yet make no clean start: the next one recovers them.
        """
        if self.are_loaded:
            self.checkpoint(effects)
            effects.append((WRITE, CLEAN_STOP, True))
        effects.append((SYNC, (also, HIGH_WATERMARKS, CLEAN_STOP, *self.hosted), token))

    def take_role(
        self,
        now: int,
        key: PartitionKey,
        topic: str,
        partition: PartitionImage | None,
        effects: Effects,
    ) -> None:
        """Lead or follow as the partition is now; without a replica here, remove the log.

        `fetchers.send` begins to follow.
        """
        situation = self._situation
        if partition is None or situation.node_id not in partition.replicas:
            self.remove(key, effects)
            return
        replica = self.hosted.get(key) or self._create(key, topic, effects)
        replica.topic = topic
        role = (partition.leader, partition.leader_epoch)
        if role == replica.role:
            leader = self.leaders.get(key)
            if leader is not None and partition.partition_epoch > leader.partition_epoch:
                leader.commit(partition)
                leader.advance(now, effects)
            return
        self.leave_role(key, effects)
        replica.role = role
        if partition.leader == situation.node_id:
            self._lead(now, replica, partition, effects)
        elif partition.leader >= 0:
            self._follow(replica, partition, effects)

    def _lead(
        self, now: int, replica: Replica, partition: PartitionImage, effects: Effects
    ) -> None:
        log = replica.log
        leader = Leader(log, replica.producers, self._situation, self.fetches)
        leader.min_isr = self._situation.min_insync_replicas(replica.topic)
        leader.begin(now, partition)
        self.leaders[log.key] = leader
        effects.append((NOTE, LEADS, log.key, partition.leader_epoch, log.end))
        leader.advance(now, effects)

    def _follow(self, replica: Replica, partition: PartitionImage, effects: Effects) -> None:
        key, epoch = replica.log.key, partition.leader_epoch
        effects.append((NOTE, FOLLOWS, key, partition.leader, epoch))
        self.fetchers.follow(
            replica.log,
            replica.producers,
            leader_id=partition.leader,
            leader_epoch=epoch,
            effects=effects,
        )

    def leave_role(self, key: PartitionKey, effects: Effects) -> None:
        """Lead or follow no more in this partition, whose log stays."""
        self.hosted[key].role = _NOBODY
        self.fetchers.unfollow(key)
        leader = self.leaders.pop(key, None)
        if leader is not None:
            leader.end(effects)

    def remove(self, key: PartitionKey, effects: Effects) -> None:
        """Lead and follow no more in this partition, and remove its log, if there is one."""
        if key in self.hosted:
            self.leave_role(key, effects)
            del self.hosted[key]
            effects.append((DELETE, key))

    def _delete_strays(self, effects: Effects) -> None:
        """Delete what the metadata has given to others while this broker was away (KIP-631)."""
        partitions, node_id = self._situation.image.partitions, self._situation.node_id
        for key in tuple(self.hosted):
            if key not in partitions or node_id not in partitions[key].replicas:
                self.remove(key, effects)

    def _shrink(self, now: int, effects: Effects) -> None:
        """Propose ISRs without those that lag; as often as Kafka looks for them."""
        self._shrink_due_ns = now + self._situation.configuration.replica_lag_max_ns // 2
        for leader in self.leaders.values():
            isr = leader.kept_isr(now)
            if isr is not None:
                self.proposals.propose(now, leader, isr, effects)

    def _create(self, key: PartitionKey, topic: str, effects: Effects) -> Replica:
        effects.append((CREATE, key, topic))
        replica = self.hosted[key] = Replica(PartitionLog(key, (), 0), topic)
        return replica
