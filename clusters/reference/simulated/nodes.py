"""The nodes of a simulated cluster: their names, numbers and configurations, from its spec."""

from typing import Final

from clusters.kafka_port import KafkaSpec, Role
from clusters.port import NodeName
from clusters.reference.nodes.configuration import Configuration
from clusters.reference.simulated.settings import configured
from clusters.reference.specs import own_settings
from history.failure import UsageError

__all__ = ["CLUSTER_ID", "CONTROLLERS_FROM", "configurations"]

CLUSTER_ID: Final = "simulated"
CONTROLLERS_FROM: Final = 1000
"""The ids of controllers are above it."""


def configurations(spec: KafkaSpec, *, level: int, seed: int) -> dict[NodeName, Configuration]:
    """Return what each node is told, controllers first; UsageError for a setting that cannot be."""
    voters = tuple(CONTROLLERS_FROM + number for number in range(1, spec.controllers + 1))
    found: dict[NodeName, Configuration] = {}
    for node_id in (*voters, *range(1, spec.brokers + 1)):
        is_controller = node_id >= CONTROLLERS_FROM
        number = node_id - CONTROLLERS_FROM if is_controller else node_id
        role = Role.CONTROLLER if is_controller else Role.BROKER
        name = NodeName(f"{role}-{number}")
        try:
            found[name] = configured(
                own_settings(spec, role),
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
