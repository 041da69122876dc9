"""The words under `cluster`: which system, and what its clusters are made of."""

from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any

from clusters.port import KEY, ClusterSpec
from clusters.systems import SYSTEMS
from harness.scenario.validation import MappingReader, build, mapping, settings
from history.failure import SpecError
from nemesis.words import did_you_mean

__all__ = ["parse_cluster"]


def parse_cluster(value: object) -> ClusterSpec:
    """Return the spec of a cluster of the system that `system` names, of Kafka by default.

    Raise SpecError with the paths to what cannot be.
    """
    data = mapping(value, example="{brokers: 3, kafka: 4.3.1}")
    name = str(data.pop("system", next(iter(SYSTEMS))))
    if name not in SYSTEMS:
        raise SpecError(("system",), f"unknown system {name!r}; {did_you_mean(name, SYSTEMS)}")
    kind = SYSTEMS[name].spec
    known = {str(one.metadata.get(KEY, one.name)): one for one in fields(kind)}
    read = MappingReader(data)
    read.refuse_unknown(["system", *known])
    stated = {
        key: read.at(key, _parser(known[key]), otherwise=None) for key in data if key in known
    }
    right = {key: stated[key] for key in stated if key not in read.unread}
    called = {one.name: key for key, one in known.items()}
    return read.mistakes.refuse_after(lambda: _checked(build(kind, right, called=called)))


def _checked(spec: ClusterSpec) -> ClusterSpec:
    spec.check()
    return spec


def _parser(of: Field[Any]) -> Callable[[object], object]:
    """Return the parser of this field. Versions are texts: YAML takes 3.5 for a number."""
    if of.name.endswith("settings"):
        return settings
    is_text = "str" in str(of.type) and "tuple" not in str(of.type)
    return _text if is_text else lambda value: value


def _text(value: object) -> str | None:
    if isinstance(value, float):
        raise SpecError((), f"{value!r} is a number; quote it: '{value}'")
    return None if value is None else str(value)
