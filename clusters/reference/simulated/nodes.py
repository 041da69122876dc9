"""The configurations of a simulated cluster's nodes, from its spec and Kafka's property names.

Defaults are those that the harness gives Kafka's nodes, so that a play has the time it expects. A
setting of Kafka's that means nothing here (the JVM's heap, sockets, the cleaner) is left out, and
named to whoever asks.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from clusters.kafka_port import KafkaSpec, Role
from clusters.port import NodeName
from clusters.reference.nodes.configuration import Configuration
from clusters.reference.shell.properties import number_fields
from clusters.reference.specs import DEFAULTS, own_settings
from history.failure import UsageError

__all__ = ["CLUSTER_ID", "CONTROLLERS_FROM", "configurations", "configured", "ignored"]

_FIELDS: Final = number_fields()
CLUSTER_ID: Final = "simulated"
CONTROLLERS_FROM: Final = 1000
"""The ids of controllers are above it."""


def configured(settings: Mapping[str, str], **known: Any) -> Configuration:
    """Return the configuration with these settings over the defaults, and the rest of its fields.

    Raises ValueError for a text that is not a number.
    """
    found: dict[str, Any] = {}
    for name, value in {**DEFAULTS, **settings}.items():
        if name in _FIELDS:
            field, unit = _FIELDS[name]
            try:
                found[field] = int(value) * unit
            except ValueError:
                raise ValueError(f"{name}: expected a whole number, found {value!r}") from None
    assert found.keys() | known.keys() <= {field.name for field in fields(Configuration)}
    return Configuration(**{**found, **known})


def ignored(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that mean nothing here."""
    return tuple(sorted(name for name in settings if name not in _FIELDS))


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
