"""The nodes of a simulated cluster: their names, numbers and configurations, from its spec."""

from collections.abc import Mapping
from typing import Final

from clusters.port import ClusterSpec, NodeName, Role
from clusters.reference.configuration import Configuration
from clusters.reference.simulated_settings import configured
from history.failure import UsageError

__all__ = ["CLUSTER_ID", "CONTROLLERS_FROM", "configurations", "level_of", "own_settings"]

CLUSTER_ID: Final = "simulated"
CONTROLLERS_FROM: Final = 1000
"""The ids of controllers are above it."""
_LEVELS: Final = ("1", "2", "3")


def level_of(spec: ClusterSpec) -> int:
    """The metadata.version that the cluster starts with, 3 by default. Raises UsageError."""
    if spec.metadata_version is None:
        return int(_LEVELS[-1])
    if spec.metadata_version not in _LEVELS:
        raise UsageError(
            f"a reference cluster has the metadata.versions {', '.join(_LEVELS)}, found "
            f"{spec.metadata_version!r}"
        )
    return int(spec.metadata_version)


def configurations(spec: ClusterSpec, *, level: int, seed: int) -> dict[NodeName, Configuration]:
    """What each node is told, controllers first. Raises UsageError for a setting that cannot be."""
    voters = tuple(CONTROLLERS_FROM + number for number in range(1, spec.controllers + 1))
    found: dict[NodeName, Configuration] = {}
    for node_id in (*voters, *range(1, spec.brokers + 1)):
        is_controller = node_id >= CONTROLLERS_FROM
        number = node_id - CONTROLLERS_FROM if is_controller else node_id
        name = NodeName(f"{Role.CONTROLLER if is_controller else Role.BROKER}-{number}")
        try:
            found[name] = configured(
                own_settings(spec, name),
                node_id=node_id,
                is_controller=is_controller,
                voters=voters,
                cluster_id=CLUSTER_ID,
                listeners=() if is_controller else (("CLIENT", name, 9092, 0),),
                level=level,
                seed=seed,
            )
        except ValueError as error:
            raise UsageError(f"settings of {name}: {error}") from None
    return found


def own_settings(spec: ClusterSpec, node: NodeName) -> Mapping[str, str]:
    """The settings of a spec that concern a node, by Kafka's names."""
    own = spec.controller_settings if node.startswith(Role.CONTROLLER) else spec.broker_settings
    return {**spec.settings, **own}
