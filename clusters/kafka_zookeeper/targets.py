"""The servers that a play can describe: `ensemble leader`, `ensemble follower`."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusters.kafka_port import Role
from clusters.kafka_zookeeper.view import KafkaZooKeeperView
from clusters.port import NodeName, node_number, role_name
from clusters.targets import DescribedTarget, SystemState
from clusters.zookeeper.targets import TARGETS

__all__ = ["ENSEMBLE_TARGETS"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ensemble:
    """`clusters.targets.SystemState` of the ensemble alone."""

    broker_ids: Mapping[NodeName, int]
    view: Any
    active_controller: NodeName | None
    down: frozenset[NodeName]


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


ENSEMBLE_TARGETS: Final = tuple(map(_in_ensemble, TARGETS))
