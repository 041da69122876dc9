"""The state that all parts of a broker of this generation share.

There is no metadata log. `image` is what UpdateMetadata told this broker, and what it shows to its
clients; its offset counts what was applied. Which partitions it leads and follows LeaderAndIsr
says: that is `assigned`. Either may be older than the other.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.node_port.zookeeper import Stat
from fencepost.clusters.reference.nodes.levels import LEVEL_EPOCHS, LEVEL_REGISTRATION
from fencepost.clusters.reference.nodes.situation import Situation
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from fencepost.clusters.reference.zk.messages import PartitionState
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.session_requests import SessionRequests

_UNREAD: Final = 1 << 30


class SeenChanges:
    """The notifications of changed settings: up to which one they were there at what time.

    ZooKeeper numbers them, so the name of the last one says it of all.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: list[tuple[int, str]] = []

    def add(self, now: int, names: Sequence[str]) -> None:
        """Note that these were there."""
        newest = max(names, default="")
        if newest > (self._seen[-1][1] if self._seen else ""):
            self._seen.append((now, newest))

    def last_by(self, time_ns: int) -> str:
        """Return the last one that was seen by this time; of times before it nothing is asked."""
        place = bisect_right(self._seen, time_ns, key=itemgetter(0))
        if not place:
            return ""
        del self._seen[: place - 1]
        return self._seen[0][1]


class ZkSituation(Situation):
    """The situation of a broker. `node_id` is -1 until the broker's id is found (H01)."""

    __slots__ = (
        "assigned",
        "configured",
        "controller_epoch",
        "seen_changes",
        "zk_configuration",
        "zookeeper",
    )

    rules: ZkRules

    def __init__(self, configuration: ZkConfiguration, rules: ZkRules) -> None:
        super().__init__(configuration, rules)
        self.zk_configuration = configuration
        """The configuration again, with what this generation adds."""
        self.zookeeper = SessionRequests()
        self.controller_epoch = -1
        """The highest controller epoch that this broker has heard of; -1: none."""
        self.assigned: dict[PartitionKey, PartitionState] = {}
        """The partitions that this broker leads or follows, as LeaderAndIsr said last."""
        self.configured: dict[str, int] = {}
        """The topics whose settings are read, with their ids."""
        self.seen_changes = SeenChanges()
        # Rule member_incarnations_checked.
        names_incarnations = rules.member_incarnations_checked and self.speaks_heartbeats
        self.level = LEVEL_EPOCHS if names_incarnations else LEVEL_REGISTRATION
        self.offered_level = self.fetch_level = self.level

    def min_insync_replicas(self, topic: str) -> int:
        """Return the value in force; before its settings are read, more than any ISR has."""
        return super().min_insync_replicas(topic) if topic in self.configured else _UNREAD

    @property
    def speaks_heartbeats(self) -> bool:
        """Return whether it sends heartbeats and IsrChange, and fences itself (Z11)."""
        # Rule new_behaviour_gated.
        protocol = self.zk_configuration.inter_broker_protocol
        return protocol >= InterBrokerProtocol.HEARTBEATS or not self.rules.new_behaviour_gated


def incarnation_of(stat: Stat, rules: ZkRules) -> int:
    """Return the incarnation id of a broker whose registration has this stat (Z01)."""
    # Rule incarnation_from_czxid.
    return stat.czxid if rules.incarnation_from_czxid else 0
