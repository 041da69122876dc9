"""What an await waits for: pure questions about one observation of the cluster and its clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusters.port import ClusterView, NodeName, NodeState
from history.failure import SpecError
from nemesis.words import did_you_mean

__all__ = [
    "Acknowledged",
    "ActiveController",
    "AllRecovered",
    "Condition",
    "Down",
    "Fenced",
    "Isr",
    "Leader",
    "Observation",
    "condition_data",
    "holds",
    "parse_condition",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the whole: what metadata, the host and the clients' segments say."""

    view: ClusterView | None
    """None: no broker answered."""
    active_controller: NodeName | None
    states: Mapping[NodeName, NodeState]
    broker_ids: Mapping[NodeName, int]
    acknowledged_count: int
    """Sends acknowledged since the await began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isr:
    """Each key's in-sync replicas are exactly these broker ids."""

    members: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """Each key is led by this broker id (None: by nobody)."""

    leaders: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The broker is fenced (not in metadata), or unfenced (it lists itself, and so do others)."""

    node: NodeName
    fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """The node has no process."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveController:
    """This controller is the active one."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """So many more sends were acknowledged since the await began."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRecovered:
    """Every node runs, every broker is unfenced, every partition has a leader and its full ISR."""


Condition = Isr | Leader | Fenced | Down | ActiveController | Acknowledged | AllRecovered

_WORDS = (
    "isr",
    "leader",
    "fenced",
    "unfenced",
    "down",
    "active_controller",
    "acknowledged",
    "recovered",
)


def parse_condition(
    value: object, *, nodes: Sequence[NodeName], keys: Sequence[str], broker_ids: Sequence[int]
) -> Condition:
    """`{isr: {t-0: [1]}}`, `{unfenced: broker-2}`, `{acknowledged: 500}`: one word, one value."""
    if value == "recovered":
        return AllRecovered()
    if not isinstance(value, dict) or len(value) != 1:
        raise SpecError((), f"an await takes one condition; allowed: {', '.join(_WORDS)}")
    word, operand = next(iter(value.items()))
    try:
        return _parsed(
            str(word), operand, nodes=nodes, known=_Known(keys=keys, broker_ids=broker_ids)
        )
    except SpecError as error:
        raise error.below(str(word)) from None


def holds(condition: Condition, now: Observation) -> bool:
    """Whether the condition holds in this observation. Nothing metadata-like holds unseen."""
    match condition:
        case Acknowledged(count=count):
            return now.acknowledged_count >= count
        case Down(node=node):
            return now.states[node] is NodeState.DOWN
        case ActiveController(node=node):
            return now.active_controller == node
        case _:
            return now.view is not None and _holds_in(condition, now.view, now)


def condition_data(condition: Condition) -> object:
    """The condition as a play writes it."""
    match condition:
        case Isr(members=members):
            return {"isr": {key: sorted(ids) for key, ids in members.items()}}
        case Leader(leaders=leaders):
            return {"leader": dict(leaders)}
        case Fenced(node=node, fenced=fenced):
            return {"fenced" if fenced else "unfenced": str(node)}
        case Down(node=node):
            return {"down": str(node)}
        case ActiveController(node=node):
            return {"active_controller": str(node)}
        case Acknowledged(count=count):
            return {"acknowledged": count}
        case AllRecovered():
            return "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    keys: Sequence[str]
    broker_ids: Sequence[int]


def _parsed(word: str, operand: object, *, nodes: Sequence[NodeName], known: _Known) -> Condition:
    match word:
        case "isr":
            by_key = _by_key(operand, known)
            return Isr(members={key: _ids(ids, known) for key, ids in by_key.items()})
        case "leader":
            by_key = _by_key(operand, known)
            return Leader(leaders={key: _leader(one, known) for key, one in by_key.items()})
        case "fenced" | "unfenced":
            return Fenced(node=_node(operand, "broker", nodes), fenced=word == "fenced")
        case "down":
            return Down(node=_node(operand, "", nodes))
        case "active_controller":
            return ActiveController(node=_node(operand, "controller", nodes))
        case "acknowledged":
            return Acknowledged(count=_count(operand))
        case _:
            raise SpecError((), f"unknown condition {word!r}; {did_you_mean(word, _WORDS)}")


def _holds_in(condition: Condition, view: ClusterView, now: Observation) -> bool:
    partitions = view.partitions
    match condition:
        case Isr(members=members):
            return all(
                key in partitions and frozenset(partitions[key].isr) == wanted
                for key, wanted in members.items()
            )
        case Leader(leaders=leaders):
            return all(
                key in partitions and partitions[key].leader == wanted
                for key, wanted in leaders.items()
            )
        case Fenced(node=node, fenced=fenced):
            broker_id = now.broker_ids[node]
            if fenced:
                return broker_id not in view.brokers
            return broker_id in view.brokers & view.serving
        case AllRecovered():
            return _recovered(view, now)
        case _:
            raise AssertionError(condition)


def _recovered(view: ClusterView, now: Observation) -> bool:
    return (
        all(state is NodeState.RUNNING for state in now.states.values())
        and view.brokers & view.serving >= set(now.broker_ids.values())
        and all(
            partition.leader is not None and set(partition.isr) == set(partition.replicas)
            for partition in view.partitions.values()
        )
    )


def _by_key(operand: object, known: _Known) -> dict[str, object]:
    if not isinstance(operand, dict) or not operand:
        raise SpecError((), "expected partitions and values, e.g. {t-0: 1}")
    for key in operand:
        if key not in known.keys:
            raise SpecError((), f"no such partition: {key!r}; there are: {', '.join(known.keys)}")
    return {str(key): value for key, value in operand.items()}


def _ids(value: object, known: _Known) -> frozenset[int]:
    if not isinstance(value, list):
        raise SpecError((), f"expected a list of broker numbers, found {value!r}")
    return frozenset(_broker_id(item, known) for item in value)


def _leader(value: object, known: _Known) -> int | None:
    return None if value is None else _broker_id(value, known)


def _broker_id(value: object, known: _Known) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value not in known.broker_ids:
        raise SpecError((), f"no such broker: {value!r}; there are: {list(known.broker_ids)}")
    return value


def _node(value: object, role: str, nodes: Sequence[NodeName]) -> NodeName:
    fitting = [node for node in nodes if node.startswith(role)]
    for node in fitting:
        if node == value:
            return node
    raise SpecError((), f"no such node: {value!r}; allowed: {', '.join(fitting)}")


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SpecError((), f"expected a count of 1 or more, found {value!r}")
    return value
