"""The settings of reference nodes from a cluster's spec, as processes or simulated alike."""

from collections.abc import Mapping
from typing import Final

from fencepost.clusters.kafka_port import KafkaSpec, Role
from fencepost.clusters.reference.nodes.levels import LEVEL_REGISTRATION, LEVEL_VISIBILITY
from fencepost.history.failure import UsageError

DEFAULTS: Final[Mapping[str, str]] = {
    # The values with which the harness starts Kafka: a fault shows within seconds.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "3000",
}
"""Settings by Kafka's names, unless a scenario says otherwise."""
_KAFKA_LIKE: Final = {1: "3.4.1", 2: "4.3.1", 3: "4.3.1"}
"""The releases whose expectations hold at a level: with and without its rules (KIP-903)."""


def level_of(spec: KafkaSpec) -> int:
    """The metadata.version that the cluster starts with, the highest by default.

    Raises UsageError if there is no such level.
    """
    if spec.metadata_version is None:
        return LEVEL_VISIBILITY
    levels = [str(one) for one in range(LEVEL_REGISTRATION, LEVEL_VISIBILITY + 1)]
    if spec.metadata_version not in levels:
        raise UsageError(
            f"the reference cluster has the metadata.versions {', '.join(levels)}, found "
            f"{spec.metadata_version!r}: pass --metadata-version with one of them"
        )
    return int(spec.metadata_version)


def release_like(spec: KafkaSpec) -> str:
    """The release of Kafka whose expectations hold of a cluster of this spec."""
    return _KAFKA_LIKE[level_of(spec)]


def own_settings(spec: KafkaSpec, *roles: Role) -> dict[str, str]:
    """The settings that a spec states for nodes of these roles; DEFAULTS are beneath them."""
    return {
        **spec.settings,
        **(spec.controller_settings if Role.CONTROLLER in roles else {}),
        **(spec.broker_settings if Role.BROKER in roles else {}),
    }
