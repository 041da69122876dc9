"""The words under `cluster`: which system, and what its clusters are made of."""

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from clusters.port import KEY, ClusterSpec
from clusters.systems import SYSTEMS
from harness.scenario.validation import at, build, mapping, refuse_unknown, settings
from history.failure import SpecError
from nemesis.words import did_you_mean

__all__ = ["parse_cluster"]


def parse_cluster(value: object) -> ClusterSpec:
    """The spec of a cluster of the system that `system` names, of Kafka by default."""
    data = mapping(value, example="{brokers: 3, kafka: 4.3.1}")
    name = str(data.pop("system", next(iter(SYSTEMS))))
    if name not in SYSTEMS:
        raise SpecError(("system",), f"unknown system {name!r}; {did_you_mean(name, SYSTEMS)}")
    known = {str(one.metadata.get(KEY, one.name)): one for one in fields(SYSTEMS[name].spec)}
    refuse_unknown(data, ["system", *known])
    spec = build(
        SYSTEMS[name].spec,
        {known[key].name: _value(data, key, known[key]) for key in data},
    )
    spec.check()
    return spec


def _value(data: Mapping[str, Any], key: str, of: Field[Any]) -> object:
    """What a scenario says of this field. Versions are texts: YAML takes 3.5 for a number."""
    value = data[key]
    if of.name.endswith("settings"):
        return at(key, data, settings)
    if "str" not in str(of.type) or value is None or "tuple" in str(of.type):
        return value
    if isinstance(value, float):
        raise SpecError((key,), f"{value!r} is a number; quote it: '{value}'")
    return str(value)
