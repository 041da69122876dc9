"""The conditions on a cluster of the ZooKeeper generation: Kafka's, and those on its ensemble.

`{active_controller: broker-2}`, `{registered: broker-2}`; `{led: true}`, `{follows: zookeeper-1}`,
`{caught_up: zookeeper-1}`, `{last_zxid: {zookeeper-1: 0x100000005}}`, and
`{ensemble_leader: zookeeper-2}`, for `leader` is about partitions here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from clusters import kafka_conditions
from clusters.kafka_conditions import ActiveController
from clusters.kafka_port import Role
from clusters.kafka_zookeeper.view import KafkaZooKeeperView
from clusters.observation import Condition, Observation, Parse, node_of
from clusters.port import node_number, role_name
from clusters.stage import Stage
from clusters.zookeeper import conditions as ensemble_conditions

__all__ = ["CONDITIONS", "OfEnsemble"]

_WORDS: Final = {
    "ensemble_leader": "leader",
    **{word: word for word in ensemble_conditions.CONDITIONS if word != "leader"},
}
"""The words of conditions on the ensemble, and what they are where there is nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfEnsemble:
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


def _of_ensemble(word: str, operand: object, stage: Stage) -> Condition:
    plain = _WORDS[word]
    servers = tuple(node for node in stage.nodes if role_name(node) == Role.ZOOKEEPER)
    parse = ensemble_conditions.CONDITIONS[plain]
    return OfEnsemble(word=word, condition=parse(plain, operand, replace(stage, nodes=servers)))


def _active(_word: str, operand: object, stage: Stage) -> Condition:
    nodes = tuple(node for node in stage.nodes if role_name(node) != Role.ZOOKEEPER)
    return ActiveController(node=node_of(operand, replace(stage, nodes=nodes)))


CONDITIONS: Final[Mapping[str, Parse]] = {
    **kafka_conditions.CONDITIONS,
    "active_controller": _active,
    **dict.fromkeys(_WORDS, _of_ensemble),
}
