"""The registry of systems: one entry each, and how a scenario and a command line name them."""

from typing import Final

from fencepost.clusters.kafka_conditions import CONDITIONS
from fencepost.clusters.kafka_migrating.system import SYSTEM as KAFKA_MIGRATING
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.kafka_targets import TARGETS, first_view
from fencepost.clusters.kafka_zookeeper.system import SYSTEM as KAFKA_ZOOKEEPER
from fencepost.clusters.port import OWN_ROLES, ClusterSpec, NodeName, NodeRole, NodeRoles
from fencepost.clusters.reference_zookeeper.system import SYSTEM as REFERENCE_ZOOKEEPER
from fencepost.clusters.system import Make, System
from fencepost.clusters.zookeeper.system import SYSTEM as ZOOKEEPER

KAFKA: Final = Make(
    name="kafka",
    driver_module="fencepost.clusters.kafka.driver",
    releases_module="fencepost.clusters.kafka.releases",
    title="Kafka {release}",
)
"""A release of Apache Kafka, as processes."""
REFERENCE: Final = Make(
    name="reference",
    driver_module="fencepost.clusters.reference.driver",
    title="the reference cluster",
    of_our_own=True,
)
"""The reference cluster, as processes."""
SIMULATED: Final = Make(
    name="simulated",
    driver_module="fencepost.clusters.reference.simulated.driver",
    title="the reference cluster in virtual time",
    in_virtual_time=True,
    of_our_own=True,
)
"""The reference cluster and its clients in one process and in virtual time."""

SYSTEMS: Final[dict[str, System]] = {
    system.name: system
    for system in (
        System(
            name="kafka",
            spec=KafkaSpec,
            makes=(KAFKA, REFERENCE, SIMULATED),
            conditions=CONDITIONS,
            first_view=first_view,
            targets=TARGETS,
            drawn_targets=("one broker", "leader", "active controller"),
            tables=(
                *("describes", "metadata_offsets", "quorum_claims"),
                *("metadata_log", "replicas", "replica_records", "node_settings", "log_findings"),
                "topic_settings",
            ),
        ),
        ZOOKEEPER,
        KAFKA_ZOOKEEPER,
        KAFKA_MIGRATING,
        REFERENCE_ZOOKEEPER,
    )
}
"""The systems by the name in `cluster: {system: NAME}`; the first one need not be named."""
MAKES: Final = {make.name: make for system in SYSTEMS.values() for make in system.makes}
"""The makes by the name in `--cluster NAME`."""


AUTO: Final = "auto"
"""The word for the system's own make, or another that is to be had, in `--cluster auto`."""

ROLES: Final = {role.name: role for system in SYSTEMS.values() for role in system.spec.roles}
"""The roles by the first part of their nodes' names, which means the same in every system."""


def kinds_of_node(node: NodeName, roles: NodeRoles = OWN_ROLES) -> tuple[NodeRole, ...]:
    """Return the roles of a node."""
    return tuple(ROLES[role] for role in roles.of(node))


def system_of(spec: ClusterSpec) -> System:
    """The system whose clusters such a spec describes."""
    return next(system for system in SYSTEMS.values() if system.spec is type(spec))
