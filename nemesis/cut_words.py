"""The notation in which a play writes the flows that a partition cuts."""

from collections.abc import Mapping

from clusters.port import CLIENTS, NodeName
from clusters.stage import Stage
from history.failure import SpecError
from nemesis.targets import Choice, NamedNodes, parse_target, target_data
from nemesis.topology import ALL, Cut, Flows, Groups, Isolate, OneWay, Party, Shape, Shaped
from nemesis.words import did_you_mean

__all__ = ["CUT_FORMS", "cut_data", "one_of", "parse_cut"]

CUT_FORMS = (
    "{isolate: broker-1}, {groups: [[broker-1], controllers]}, {from: broker-1, to: controllers} "
    "or {shape: halves, among: brokers}"
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
                shape=Shape(one_of(data, "shape", tuple(Shape))),
                among=_among(data, stage),
            )
        case ["flows"]:
            return Flows(flows=_flows(data["flows"], stage))
        case _:
            raise SpecError((), f"a partition is one of {CUT_FORMS}")


def _among(data: Mapping[str, object], stage: Stage) -> str:
    return one_of({"among": ALL} | dict(data), "among", (ALL, *_roles(stage)))


def _roles(stage: Stage) -> dict[str, str]:
    """Return the roles of the cluster's nodes, by their plurals."""
    return {f"{role}s": role for role in stage.node_roles.names(stage.nodes)}


def one_of(data: Mapping[str, object], key: str, allowed: tuple[str, ...]) -> str:
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


def cut_data(cut: Cut) -> dict[str, object]:
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
