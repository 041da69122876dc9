"""The settings of a scenario, by Kafka's property names, as the configuration of a simulated node.

Defaults are those that the harness gives Kafka's nodes, so that a play has the time it expects. A
setting of Kafka's that means nothing here (the JVM's heap, sockets, the cleaner) is left out, and
named to whoever asks.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from clusters.reference.nodes.configuration import Configuration
from clusters.reference.shell.properties import number_fields
from clusters.reference.specs import DEFAULTS

__all__ = ["configured", "ignored"]

_FIELDS: Final = number_fields()


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
