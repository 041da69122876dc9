"""The reference cluster of the ZooKeeper generation as a system, as scenarios describe it.

The same roles, views, conditions, targets and evidence as of Kafka on ZooKeeper; the brokers are
our own.
"""

from dataclasses import dataclass, replace
from typing import Final

from fencepost.clusters.kafka_zookeeper.system import SYSTEM as KAFKA_ON_ZOOKEEPER
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.system import Make
from fencepost.history.failure import Mistakes

_PROTOCOLS: Final = (1, 2)
_RELEASE_LIKE: Final = KafkaZooKeeperSpec().release
"""The release of Kafka whose expectations hold of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceZooKeeperSpec(KafkaZooKeeperSpec):
    """A cluster to build: how many servers and brokers, at which protocol, with which settings."""

    inter_broker_protocol: int = 2
    """1: below the behaviour of the draft "Controller heartbeats"; 2: with it."""

    @property
    def protocol_level(self) -> str:
        """The inter-broker protocol."""
        return str(self.inter_broker_protocol)

    def note_mistakes(self, mistakes: Mistakes) -> None:
        """Note what cannot be, with the paths of the keys."""
        KafkaZooKeeperSpec.note_mistakes(self, mistakes)
        if self.inter_broker_protocol not in _PROTOCOLS:
            found = f"expected 1 or 2, found {self.inter_broker_protocol}"
            mistakes.note(("inter_broker_protocol",), found)
        if self.release != _RELEASE_LIKE:
            mistakes.note(("kafka",), "the reference brokers run no release of Kafka; leave it out")


REFERENCE_ZOOKEEPER: Final = Make(
    name="reference-zookeeper",
    driver_module="fencepost.clusters.reference_zookeeper.driver",
    title="the reference cluster on ZooKeeper",
    of_our_own=True,
)
"""Brokers of our own and a release of Apache ZooKeeper, as processes."""

SIMULATED_ZOOKEEPER: Final = Make(
    name="simulated-zookeeper",
    driver_module="fencepost.clusters.reference_zookeeper.simulated.driver",
    title="the reference cluster on ZooKeeper in virtual time",
    in_virtual_time=True,
    of_our_own=True,
)
"""Brokers of our own, a model of ZooKeeper and the clients in one process and in virtual time."""

SYSTEM: Final = replace(
    KAFKA_ON_ZOOKEEPER,
    name="reference-zookeeper",
    spec=ReferenceZooKeeperSpec,
    makes=(REFERENCE_ZOOKEEPER, SIMULATED_ZOOKEEPER),
    message_names={"AlterPartition": "IsrChange"},
)
