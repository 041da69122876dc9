"""The configurations of a simulated cluster's nodes, from its spec and Kafka's property names.

Defaults are those that the harness gives Kafka's nodes, so that a play has the time it expects. A
setting of Kafka's that means nothing here (the JVM's heap, sockets, the cleaner) is left out, and
named to whoever asks.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from fencepost.clusters.kafka_port import KafkaSpec, Role, role_of
from fencepost.clusters.port import NodeName, node_number
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.shell.properties import number_fields
from fencepost.clusters.reference.specs import DEFAULTS, own_settings
from fencepost.history.failure import UsageError

_FIELDS: Final = number_fields()
CLUSTER_ID: Final = "simulated"
CONTROLLERS_FROM: Final = 1000
"""The ids of controllers are above it."""


def configured(settings: Mapping[str, str], **known: Any) -> Configuration:
    """Return the configuration with these settings over the defaults, and the rest of its fields.

    Raises ValueError for a text that is not a number.
    """
    found = numbers_in({**DEFAULTS, **settings})
    assert found.keys() | known.keys() <= {field.name for field in fields(Configuration)}
    return Configuration(**{**found, **known})


def numbers_in(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a configuration that settings are for; see `ignored` for the others.

    Raises ValueError for a text that is not a number.
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name in _FIELDS:
            field, unit = _FIELDS[name]
            try:
                found[field] = int(value) * unit
            except ValueError:
                raise ValueError(f"{name}: expected a whole number, found {value!r}") from None
    return found


def ignored(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that mean nothing here."""
    return tuple(sorted(name for name in settings if name not in _FIELDS))


def number_of(node: NodeName) -> int:
    """Return Kafka's id of a node, which is the number of its host."""
    return node_number(node) + (CONTROLLERS_FROM if role_of(node) is Role.CONTROLLER else 0)


def configurations(spec: KafkaSpec, *, level: int, seed: int) -> dict[NodeName, Configuration]:
    """Return what each node is told, controllers first; UsageError for a setting that cannot be."""
    numbers = {node: number_of(node) for node in spec.nodes}
    voters = tuple(numbers[node] for node in spec.node_roles.among(spec.nodes, Role.CONTROLLER))
    found: dict[NodeName, Configuration] = {}
    for name, node_id in numbers.items():
        roles = [Role(role) for role in spec.node_roles.of(name)]
        try:
            found[name] = configured(
                own_settings(spec, *roles),
                node_id=node_id,
                is_controller=Role.CONTROLLER in roles,
                voters=voters,
                cluster_id=CLUSTER_ID,
                listeners=(("CLIENT", name, 9092, 0),) if Role.BROKER in roles else (),
                level=level,
                seed=seed,
            )
        except ValueError as error:
            raise UsageError(f"settings of {name}: {error}") from None
    return found
