"""Partitions as a play writes them.

    - partition: {isolate: broker-1}                       # from every other node
    - partition: {isolate: active controller, among: controllers}
    - partition: {groups: [[broker-1], controllers]}       # who is in no group reaches everybody
    - partition: {from: broker-1, to: controllers}         # one way: what is sent there is lost
    - partition: {shape: majority-ring, among: brokers}    # one, halves, majority-ring, bridge
    - partition: {isolate: controller-1, as: cut-off}
    - partition: {isolate: broker-1, by: packets}          # not by the proxy
    - heal: cut-off
    - bandwidth: {of: broker-1, rate: 1Mbit, as: thin}     # what it sends
    - heal: thin

A side is a node, a list of sides, `brokers`, `controllers`, `clients`, `leader of KEY`, …
"""

import re
from collections.abc import Mapping

from clusters.port import NodeName
from history.failure import SpecError
from nemesis.stage import Stage
from nemesis.steps import Bandwidth, Means, Partition
from nemesis.targets import Choice, NamedNodes, parse_target, target_data
from nemesis.topology import (
    CLIENTS,
    Among,
    Cut,
    Flows,
    Groups,
    Isolate,
    OneWay,
    Party,
    Shape,
    Shaped,
)
from nemesis.words import did_you_mean, rule_name

__all__ = ["bandwidth_data", "parse_bandwidth", "parse_partition", "partition_data"]

_KEYS = ("as", "by", "isolate", "groups", "from", "to", "shape", "among", "flows")
_BANDWIDTH_KEYS = ("as", "of", "rate")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(kbit|mbit|gbit)", re.IGNORECASE)
_UNITS = {"kbit": 1000, "mbit": 1000**2, "gbit": 1000**3}
_RATE_MIN = 8000
_FORMS = (
    "{isolate: broker-1}, {groups: [[broker-1], controllers]}, {from: broker-1, to: controllers} "
    "or {shape: halves, among: brokers}"
)


def parse_partition(operand: object, stage: Stage, *, at_s: float | None) -> Partition:
    """The partition that a step makes. SpecError with the path to what cannot be."""
    if not isinstance(operand, dict):
        raise SpecError((), f"a partition is one of {_FORMS}")
    data = {str(key): value for key, value in operand.items()}
    for key in data:
        if key not in _KEYS:
            raise SpecError((key,), f"unknown key {key!r}; {did_you_mean(key, _KEYS)}")
    name = rule_name(data.pop("as", "partition"))
    if name == "all":
        raise SpecError(("as",), "'heal: all' heals everything; give the partition another name")
    by = Means(_word(data, "by", tuple(Means))) if "by" in data else None
    data.pop("by", None)
    return Partition(name=name, cut=_cut(data, stage), by=by, at_s=at_s)


def partition_data(partition: Partition) -> dict[str, object]:
    """The partition as a play writes it; `parse_partition` reads it back."""
    by = {} if partition.by is None else {"by": str(partition.by)}
    return {"partition": {"as": partition.name} | _cut_data(partition.cut) | by}


def parse_bandwidth(operand: object, stage: Stage, *, at_s: float | None) -> Bandwidth:
    """The bound that a step lays. SpecError with the path to what cannot be."""
    if not isinstance(operand, dict) or not {"of", "rate"} <= set(operand):
        raise SpecError((), "bandwidth takes {of: broker-1, rate: 1Mbit}")
    data = {str(key): value for key, value in operand.items()}
    for key in data:
        if key not in _BANDWIDTH_KEYS:
            raise SpecError((key,), f"unknown key {key!r}; {did_you_mean(key, _BANDWIDTH_KEYS)}")
    try:
        target = parse_target(data["of"], nodes=stage.nodes, keys=stage.keys)
    except SpecError as error:
        raise error.below("of") from None
    return Bandwidth(
        name=rule_name(data.get("as", "bandwidth")),
        target=target,
        bits_per_s=_rate(data["rate"]),
        at_s=at_s,
    )


def bandwidth_data(step: Bandwidth) -> dict[str, object]:
    """The bound as a play writes it; `parse_bandwidth` reads it back."""
    rate = f"{step.bits_per_s / 1000:g}kbit"
    return {"bandwidth": {"as": step.name, "of": target_data(step.target), "rate": rate}}


def _rate(value: object) -> int:
    found = _RATE.fullmatch(str(value))
    bits_per_s = 0 if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
    if bits_per_s < _RATE_MIN:
        raise SpecError(("rate",), f"expected 8kbit or more, as 500kbit or 10Mbit, found {value!r}")
    return bits_per_s


def _cut(data: Mapping[str, object], stage: Stage) -> Cut:
    match sorted(data):
        case ["isolate"] | ["among", "isolate"]:
            return Isolate(party=_party(data["isolate"], "isolate", stage), among=_among(data))
        case ["groups"]:
            groups = data["groups"]
            if not isinstance(groups, list) or len(groups) < 2:  # noqa: PLR2004  # or nothing is cut
                raise SpecError(("groups",), "expected two groups or more")
            return Groups(groups=tuple(_party(group, "groups", stage) for group in groups))
        case ["from", "to"]:
            return OneWay(
                sender=_party(data["from"], "from", stage),
                receiver=_party(data["to"], "to", stage),
            )
        case ["shape"] | ["among", "shape"]:
            return Shaped(
                shape=Shape(_word(data, "shape", tuple(Shape))),
                among=_among(data),
            )
        case ["flows"]:
            return Flows(flows=_flows(data["flows"], stage))
        case _:
            raise SpecError((), f"a partition is one of {_FORMS}")


def _among(data: Mapping[str, object]) -> Among:
    return Among(_word({"among": "all"} | dict(data), "among", tuple(Among)))


def _word(data: Mapping[str, object], key: str, allowed: tuple[str, ...]) -> str:
    found = str(data[key])
    if found not in allowed:
        raise SpecError((key,), f"unknown {key} {found!r}; {did_you_mean(found, allowed)}")
    return found


def _party(value: object, key: str, stage: Stage) -> Party:
    items = value if isinstance(value, list) else [value]
    plain = {"brokers": "all brokers", "controllers": "all controllers"}
    try:
        targets = tuple(
            parse_target(plain.get(str(item), item), nodes=stage.nodes, keys=stage.keys)
            for item in items
            if item != CLIENTS
        )
    except SpecError as error:
        raise error.below(key) from None
    return Party(targets=targets, clients=CLIENTS in items)


def _flows(value: object, stage: Stage) -> frozenset[tuple[NodeName, NodeName]]:
    known = {*stage.nodes, CLIENTS}
    items = value if isinstance(value, list) else [value]
    flows = set()
    for item in items:
        ends = [NodeName(end.strip()) for end in str(item).split(">")]
        if len(ends) != 2 or not known.issuperset(ends):  # noqa: PLR2004  # a flow has two ends
            raise SpecError(("flows",), f"expected 'broker-1 > controller-1', found {item!r}")
        flows.add((ends[0], ends[1]))
    return frozenset(flows)


def _cut_data(cut: Cut) -> dict[str, object]:
    match cut:
        case Isolate(party=party, among=among):
            isolated: dict[str, object] = {"isolate": _party_data(party)}
            return isolated if among is Among.ALL else isolated | {"among": str(among)}
        case Groups(groups=groups):
            return {"groups": [_party_data(group) for group in groups]}
        case OneWay(sender=sender, receiver=receiver):
            return {"from": _party_data(sender), "to": _party_data(receiver)}
        case Shaped(shape=shape, among=among):
            return {"shape": str(shape), "among": str(among)}
        case Flows(flows=flows):
            return {"flows": [f"{one} > {other}" for one, other in sorted(flows)]}


def _party_data(party: Party) -> list[object]:
    found: list[object] = [str(CLIENTS)] if party.clients else []
    for target in party.targets:
        if isinstance(target, NamedNodes):
            found += [str(node) for node in target.nodes]
        elif isinstance(target, Choice) and target.share == "all":
            found.append(f"{target.role}s")
        else:
            found.append(target_data(target))
    return found
