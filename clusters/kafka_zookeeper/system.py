"""Apache Kafka of the ZooKeeper generation as a system: its clusters, as scenarios describe them.

Of what Kafka's other clusters have, it lacks controllers of their own: one of the brokers is the
active controller. Its conditions are Kafka's, and those on its ensemble:
`{active_controller: broker-2}`, `{registered: broker-2}`; `{led: true}`, `{follows: zookeeper-1}`,
`{caught_up: zookeeper-1}`, `{last_zxid: {zookeeper-1: 0x100000005}}`, and
`{ensemble_leader: zookeeper-2}`, for `leader` is about partitions here. So a play describes servers
as `ensemble leader` and `ensemble follower`.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from fencepost.clusters import kafka_conditions
from fencepost.clusters.kafka_conditions import ControlledBy
from fencepost.clusters.kafka_port import BROKERS, BrokersSpec, Role, role_of
from fencepost.clusters.kafka_targets import TARGETS
from fencepost.clusters.kafka_zookeeper.view import SERVER_ID_BASE, KafkaZooKeeperView, first_view
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.observation import Condition, Observation, Parse, node_of
from fencepost.clusters.port import KEY, NodeName, NodeRole, node_number, role_name
from fencepost.clusters.stage import Stage
from fencepost.clusters.system import Make, System
from fencepost.clusters.targets import DescribedTarget, SystemState
from fencepost.clusters.zookeeper import conditions as ensemble_conditions
from fencepost.clusters.zookeeper.system import (
    SERVER_PORT_COUNT,
    SIZES,
    ZooKeeperSpec,
    refuse_reserved,
)
from fencepost.clusters.zookeeper.targets import TARGETS as OF_ENSEMBLES
from fencepost.history.failure import Mistakes

ZOOKEEPERS: Final = NodeRole(name=Role.ZOOKEEPER, decides=True, port_count=SERVER_PORT_COUNT)
_SESSION_MS_MAX: Final = "60000"
"""A play may need a broker whose session outlives all others."""
_WORDS: Final = {
    "ensemble_leader": "leader",
    **{word: word for word in ensemble_conditions.CONDITIONS if word != "leader"},
}
"""The words of conditions on the ensemble, and what they are where there is nothing else."""


def _of_ensemble(word: str, operand: object, stage: Stage) -> Condition:
    plain = _WORDS[word]
    servers = tuple(node for node in stage.nodes if role_name(node) == Role.ZOOKEEPER)
    parse = ensemble_conditions.CONDITIONS[plain]
    return _OfEnsemble(word=word, condition=parse(plain, operand, replace(stage, nodes=servers)))


def _active(_word: str, operand: object, stage: Stage) -> Condition:
    nodes = tuple(node for node in stage.nodes if role_name(node) != Role.ZOOKEEPER)
    return ControlledBy(node=node_of(operand, replace(stage, nodes=nodes)))


CONDITIONS: Final[Mapping[str, Parse]] = {
    **kafka_conditions.CONDITIONS,
    "active_controller": _active,
    **dict.fromkeys(_WORDS, _of_ensemble),
}


def _in_ensemble(target: DescribedTarget) -> DescribedTarget:
    def find(now: SystemState, key: str, draw: random.Random) -> NodeName:
        view: KafkaZooKeeperView | None = now.view
        servers = [node for node in now.broker_ids if role_name(node) == Role.ZOOKEEPER]
        ensemble = _Ensemble(
            broker_ids={node: node_number(node) for node in servers},
            view=None if view is None else view.ensemble,
            active_controller=now.active_controller,
            down=now.down,
        )
        return target.find(ensemble, key, draw)

    return DescribedTarget(words=f"ensemble {target.words}", find=find)


ENSEMBLE_TARGETS: Final = tuple(map(_in_ensemble, OF_ENSEMBLES))


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaZooKeeperSpec(BrokersSpec):
    """A cluster to build: how many servers and brokers, of which releases, with which settings."""

    zookeepers: int = 1
    release: str = field(default="3.9.2", metadata={KEY: "kafka"})
    """A release of Apache Kafka from 2.0 to 3.9, or `path:DIR` of a build of the user's own."""
    zookeeper: str = "3.9.5"
    """The release of Apache ZooKeeper."""
    zookeeper_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of every server, as in zoo.cfg. They win over the harness's defaults."""
    control_plane_listener: bool = False
    """True: the controller and brokers talk on a listener of their own. From 2.2 on."""

    may_be_old: ClassVar[bool] = True
    roles: ClassVar[tuple[NodeRole, ...]] = (
        ZOOKEEPERS,
        BROKERS,
    )

    @property
    def has_control_plane(self) -> bool:
        """True if brokers hear the controller on a listener of its own (KIP-291)."""
        return self.control_plane_listener

    def port_count(self) -> int:
        """Return the number of ports that all nodes take together."""
        own = self.brokers if self.has_control_plane else 0
        return BrokersSpec.port_count(self) + own

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of nodes of each role."""
        return {Role.ZOOKEEPER: self.zookeepers, Role.BROKER: self.brokers}

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of brokers; of servers, 2000 and their `myid`."""
        bases = {Role.ZOOKEEPER: SERVER_ID_BASE, Role.BROKER: 0}
        return {
            node: node_number(node) + bases[role]
            for node in self.nodes
            if (role := role_of(node)) in bases
        }

    @property
    def ensemble(self) -> ZooKeeperSpec:
        """The ensemble that keeps its metadata."""
        return ZooKeeperSpec(
            servers=self.zookeepers,
            release=self.zookeeper,
            settings={"maxSessionTimeout": _SESSION_MS_MAX, **self.zookeeper_settings},
            java_options=self.java_options,
        )

    def check(self) -> None:
        """Raise SpecError, with the paths of the keys, for a cluster that cannot be."""
        mistakes = Mistakes()
        self.note_mistakes(mistakes)
        mistakes.refuse()

    def note_mistakes(self, mistakes: Mistakes) -> None:
        """Note what cannot be, with the paths of the keys."""
        if self.zookeepers not in SIZES:
            mistakes.note(("zookeepers",), f"expected 1, 3 or 5 servers, found {self.zookeepers}")
        self.note_brokers(mistakes)
        with mistakes.below("zookeeper_settings"):
            refuse_reserved(self.zookeeper_settings)


KAFKA_ZOOKEEPER: Final = Make(
    name="kafka-zookeeper",
    driver_module="fencepost.clusters.kafka_zookeeper.driver",
    releases_module="fencepost.clusters.kafka_zookeeper.releases",
    title="Kafka {release} on ZooKeeper",
)
"""A release of Apache Kafka and one of Apache ZooKeeper, as processes."""

SYSTEM: Final = System(
    name="kafka-zookeeper",
    spec=KafkaZooKeeperSpec,
    makes=(KAFKA_ZOOKEEPER,),
    conditions=CONDITIONS,
    first_view=first_view,
    targets=(*TARGETS, *ENSEMBLE_TARGETS),
    drawn_targets=("one broker", "leader", "active controller", "one zookeeper"),
    tables=(
        *("metadata_log", "describes", "replicas", "replica_records"),
        *("ensemble", "server_disks", "transaction_log", "znodes"),
        *("node_settings", "log_findings"),
    ),
    protocols=frozenset(LinkProtocol) - {LinkProtocol.BYTES},
    led_by=Role.BROKER,
    stands_for={Role.CONTROLLER: Role.ZOOKEEPER},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ensemble:
    """`clusters.targets.SystemState` of the ensemble alone."""

    broker_ids: Mapping[NodeName, int]
    view: Any
    active_controller: NodeName | None
    down: frozenset[NodeName]


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfEnsemble:
    """A condition of ZooKeeper's, on the ensemble."""

    word: str
    condition: Condition

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of the wire that it asks about."""
        return self.condition.rules

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: KafkaZooKeeperView | None = now.view
        servers = [node for node in now.broker_ids if role_name(node) == Role.ZOOKEEPER]
        return self.condition.holds(
            replace(
                now,
                view=None if view is None else view.ensemble,
                broker_ids={node: node_number(node) for node in servers},
            )
        )

    def data(self) -> object:
        """Return the condition as a play writes it."""
        stated = self.condition.data()
        assert isinstance(stated, dict), stated
        (value,) = stated.values()
        return {self.word: value}
