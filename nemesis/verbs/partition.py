"""A partition: flows between nodes are cut, until it is healed by its name.

    - partition: {isolate: broker-1}                       # from every other node
    - partition: {isolate: active controller, among: controllers}
    - partition: {groups: [[broker-1], controllers]}       # a node in no group reaches all nodes
    - partition: {from: broker-1, to: controllers}         # one way: what is sent there is lost
    - partition: {shape: majority-ring, among: brokers}    # one, halves, majority-ring, bridge
    - partition: {isolate: controller-1, as: cut-off}
    - partition: {isolate: broker-1, by: packets}          # not by the proxy

A side is a node, a list of sides, `brokers`, `controllers`, `clients`, `leader of KEY`, …
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.targets import Choice, NamedNodes, parse_target, target_data
from fencepost.nemesis.topology import (
    ALL,
    Cut,
    Flows,
    Groups,
    Isolate,
    OneWay,
    Party,
    Shape,
    Shaped,
)
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import Breaking
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Capabilities, Director, Verb
from fencepost.nemesis.words import did_you_mean, rule_name

_KEYS = ("as", "by", "isolate", "groups", "from", "to", "shape", "among", "flows")
_CUT_FORMS = (
    "{isolate: broker-1}, {groups: [[broker-1], controllers]}, {from: broker-1, to: controllers} "
    "or {shape: halves, among: brokers}"
)


class Means(StrEnum):
    """The means of a partition."""

    PROXY = "proxy"
    """The proxy passes nothing on: who sends sees a connection that is there, and waits."""
    PACKETS = "packets"
    """Rules in the nodes' own networks drop each packet, acknowledgements of TCP's included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(Breaking):
    """Cut the network between nodes, until it is healed by its name."""

    name: str
    cut: Cut
    by: Means | None = None
    """The means of the cut; None: the proxy where there is one, else packets."""


def _parse(written: StepSource) -> Partition:
    operand, stage = written.operand, written.stage
    if not isinstance(operand, dict):
        raise SpecError((), f"a partition is one of {_CUT_FORMS}")
    data = {str(key): value for key, value in operand.items()}
    for key in data:
        if key not in _KEYS:
            raise SpecError((key,), f"unknown key {key!r}; {did_you_mean(key, _KEYS)}")
    name = rule_name(data.pop("as", "partition"))
    if name == "all":
        raise SpecError(("as",), "'heal: all' heals everything; give the partition another name")
    by = Means(_one_of(data, "by", tuple(Means))) if "by" in data else None
    data.pop("by", None)
    return Partition(name=name, cut=parse_cut(data, stage), by=by)


def _data(partition: Partition) -> dict[str, object]:
    by = {} if partition.by is None else {"by": str(partition.by)}
    return {"partition": {"as": partition.name} | _cut_data(partition.cut) | by}


def _perform(partition: Partition, director: Director) -> bool:
    return director.on_the_wire(partition)


def _follow(partition: Partition, predicted: PredictedState) -> None:
    predicted.begin(partition.name, predicted.partitions, what="partition")


def _why_not(partition: Partition, there: Capabilities) -> str | None:
    if partition.by is Means.PACKETS:
        return there.why_no_packets
    return there.why_no_cut if partition.by is None else there.why_no_wire


VERBS = (
    Verb(
        word="partition",
        example=("partition: {as: p, isolate: broker-1}",),
        step=Partition,
        parse=_parse,
        data=_data,
        perform=_perform,
        follow=_follow,
        why_not=_why_not,
        fault=True,
        kind=lambda step: "packets" if step.by is Means.PACKETS else "partition",
        concerns_clients=lambda step: step.cut.concerns_clients,
        state="cut off",
        tones=("#7450c8", "#a68cf0"),
    ),
)


def parse_cut(data: Mapping[str, object], stage: Stage) -> Cut:
    """Read a cut; raise SpecError with the path below it if it cannot be read."""
    match sorted(data):
        case ["isolate"] | ["among", "isolate"]:
            return Isolate(
                party=_party(data["isolate"], "isolate", stage), among=_among(data, stage)
            )
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
                shape=Shape(_one_of(data, "shape", tuple(Shape))),
                among=_among(data, stage),
            )
        case ["flows"]:
            return Flows(flows=_flows(data["flows"], stage))
        case _:
            raise SpecError((), f"a partition is one of {_CUT_FORMS}")


def _among(data: Mapping[str, object], stage: Stage) -> str:
    return _one_of({"among": ALL} | dict(data), "among", (ALL, *_roles(stage)))


def _roles(stage: Stage) -> dict[str, str]:
    """Return the roles of the cluster's nodes, by their plurals."""
    return {f"{role}s": role for role in stage.node_roles.names(stage.nodes)}


def _one_of(data: Mapping[str, object], key: str, allowed: tuple[str, ...]) -> str:
    """Read the word at a key, which has to be one of those that are allowed."""
    found = str(data[key])
    if found not in allowed:
        raise SpecError((key,), f"unknown {key} {found!r}; {did_you_mean(found, allowed)}")
    return found


def _party(value: object, key: str, stage: Stage) -> Party:
    items = value if isinstance(value, list) else [value]
    plain = {roles: f"all {roles}" for roles in _roles(stage)}
    try:
        targets = tuple(
            parse_target(plain.get(str(item), item), stage) for item in items if item != CLIENTS
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
    """Write a cut; `parse_cut` reads it back."""
    match cut:
        case Isolate(party=party, among=among):
            isolated: dict[str, object] = {"isolate": _party_data(party)}
            return isolated if among == ALL else isolated | {"among": among}
        case Groups(groups=groups):
            return {"groups": [_party_data(group) for group in groups]}
        case OneWay(sender=sender, receiver=receiver):
            return {"from": _party_data(sender), "to": _party_data(receiver)}
        case Shaped(shape=shape, among=among):
            return {"shape": str(shape), "among": among}
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
