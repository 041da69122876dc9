"""The knowledge of the active controller: the znodes as it read or wrote them last.

It is kept as a `MetadataImage`, so that the decisions of `nodes.control` are made on it; its
partition epochs are the versions of the states' znodes. What an image has no place for stands
beside it. The settings are those of the broker that the controller is a part of.
"""

import re
from dataclasses import replace
from typing import Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.node_port.zookeeper import Stat, ZkOutcome
from fencepost.clusters.reference.nodes.control.decision import DecisionView
from fencepost.clusters.reference.nodes.image import MetadataImage, PartitionImage
from fencepost.clusters.reference.nodes.records import MetadataRecord, TopicRecord
from fencepost.clusters.reference.zk.control.change import StateChange
from fencepost.clusters.reference.zk.messages import PartitionState
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import TOPICS, PartitionStateInfo, TopicInfo

_ASSIGNMENT: Final = re.compile(f"{TOPICS}/([^/]+)")
_STATE: Final = re.compile(f"{TOPICS}/([^/]+)/partitions/([0-9]+)/state")


class Context:
    """The context of one controller epoch."""

    __slots__ = (
        "assignments",
        "assignments_versions",
        "controller_epochs",
        "deleting",
        "epoch",
        "epoch_version",
        "hosts",
        "image",
        "removed",
        "settings_paths",
        "situation",
        "written_zxids",
    )

    def __init__(self, situation: ZkSituation, *, epoch: int, epoch_version: int) -> None:
        self.situation = situation
        self.epoch = epoch
        """The controller epoch."""
        self.epoch_version = epoch_version
        """The version of the znode /controller_epoch while that epoch lasts."""
        self.image = MetadataImage()
        self.hosts: dict[int, str] = {}
        """The hosts that brokers registered with last."""
        self.assignments: dict[str, TopicInfo] = {}
        """The content of the topics' znodes; a partition that is only here has no state yet."""
        self.assignments_versions: dict[str, int] = {}
        self.controller_epochs: dict[PartitionKey, int] = {}
        """The epochs of the controllers that wrote the partitions' states."""
        self.written_zxids: dict[PartitionKey, int] = {}
        """The transactions that wrote the states as they were read last."""
        self.deleting: dict[str, None] = {}
        """The topics that are being deleted, in order."""
        self.removed: set[int] = set()
        """The ids of topics that were removed: what was read of them before is outdated."""
        self.settings_paths: set[str] = set()
        """The znodes of settings that are there."""

    def view(self) -> DecisionView:
        """Return the basis of a decision."""
        situation = self.situation
        self.image.configs = situation.image.configs
        return DecisionView(
            image=self.image,
            rules=situation.rules,
            configuration=situation.configuration,
            epoch=self.epoch,
            offset=self.image.offset,
        )

    def apply(self, record: MetadataRecord) -> None:
        """Take a record that holds: it is written, or concerns no znode."""
        self.image.configs = self.situation.image.configs
        self.image.apply(self.image.offset, self.epoch, record)

    def assign(self, name: str, info: TopicInfo, version: int) -> None:
        """Take the content of a topic's znode as it was read or written."""
        if info.topic_id in self.removed:
            return
        if name not in self.image.topics:
            self.apply(TopicRecord(name, info.topic_id))
        self.assignments[name] = info
        self.assignments_versions[name] = version
        for key in self.image.partitions_of(info.topic_id):
            self._reassign(key, info)

    def _reassign(self, key: PartitionKey, info: TopicInfo) -> None:
        old, index = self.image.partitions[key], key[1]
        self.image.partitions[key] = replace(
            old,
            replicas=info.replicas.get(index, old.replicas),
            adding=info.adding.get(index, ()),
            removing=info.removing.get(index, ()),
        )

    def take(self, path: str, outcome: ZkOutcome) -> StateChange | None:
        """Take a znode as it was read: a topic's, a state or settings; what it changes."""
        of_state, of_topic = _STATE.fullmatch(path), _ASSIGNMENT.fullmatch(path)
        if of_state is not None:
            topic_id = self.image.topics.get(of_state[1], -1)
            return self.refresh((topic_id, int(of_state[2])), outcome)
        if of_topic is not None and outcome.stat is not None:
            self.assign(of_topic[1], TopicInfo.decoded(outcome.data), outcome.stat.version)
        elif path.startswith("/config/"):
            known = self.settings_paths
            (known.discard if outcome.error else known.add)(path)
        return None

    def refresh(self, key: PartitionKey, outcome: ZkOutcome) -> StateChange | None:
        """Take a partition's state as it was read, unless a newer one is known; what it changes."""
        stat = outcome.stat
        old = self.image.partitions.get(key)
        info = self.assignments.get(self.image.names.get(key[0], ""))
        if stat is None or info is None or key[1] not in info.replicas:
            return None
        if old is not None and old.partition_epoch >= stat.version:
            return None
        state = PartitionStateInfo.decoded(outcome.data)
        new = self._partition(key, info, state, stat)
        if old is None:
            self.image.keys.setdefault(key[0], []).append(key)
        self.image.partitions[key] = new
        self.controller_epochs[key] = state.controller_epoch
        self.written_zxids[key] = stat.mzxid
        return StateChange(key, old, new)

    def _partition(
        self, key: PartitionKey, info: TopicInfo, state: PartitionStateInfo, stat: Stat
    ) -> PartitionImage:
        return PartitionImage(
            info.replicas[key[1]],
            state.isr,
            state.leader,
            state.leader_epoch,
            stat.version,
            info.adding.get(key[1], ()),
            info.removing.get(key[1], ()),
            state.recovering,
        )

    def without_state(self) -> list[PartitionKey]:
        """Return the partitions that nothing has decided on yet."""
        return [
            (info.topic_id, partition)
            for info in self.assignments.values()
            for partition in info.replicas
            if (info.topic_id, partition) not in self.image.partitions
        ]

    def is_served(self, broker_id: int) -> bool:
        """Return whether a broker is registered and counts as one that serves."""
        known = self.image.brokers.get(broker_id)
        return known is not None and not known.fenced

    def has_restarted(self, broker_id: int) -> bool:
        """Return whether a broker registered after a state was written that has it in the ISR.

        Asked when all is loaded: whoever wrote that state knew another incarnation.
        """
        known = self.image.brokers.get(broker_id)
        # Rule unseen_restarts_found.
        if known is None or not self.situation.rules.unseen_restarts_found:
            return False
        return any(
            broker_id in one.isr and self.written_zxids[key] < known.broker_epoch
            for key, one in self.image.partitions.items()
        )

    def hosted_by(self, broker_id: int) -> list[PartitionKey]:
        """Return the partitions with a replica on a broker, but those that are being deleted."""
        names = self.image.names
        return [
            key
            for key, one in self.image.partitions.items()
            if broker_id in one.replicas and names[key[0]] not in self.deleting
        ]

    def told(self, key: PartitionKey, *, is_new: bool = False) -> PartitionState:
        """Return a partition as brokers are told of it."""
        one = self.image.partitions[key]
        return PartitionState(
            key,
            self.image.names[key[0]],
            self.controller_epochs.get(key, self.epoch),
            one.leader,
            one.leader_epoch,
            one.isr,
            one.partition_epoch,
            one.replicas,
            one.adding,
            one.removing,
            is_new=is_new,
            recovering=one.recovering,
            offline=tuple(broker for broker in one.replicas if not self.is_served(broker)),
        )
