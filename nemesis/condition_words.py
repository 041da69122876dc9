"""Conditions as a play writes them: `{isr: {t-0: [1]}}`, `{unfenced: broker-2}`, `{held: join}`."""

from collections.abc import Sequence

from clusters.port import NodeName
from history.failure import SpecError
from nemesis.conditions import (
    Acknowledged,
    ActiveController,
    AllRecovered,
    Condition,
    Down,
    Fenced,
    Held,
    Isr,
    IsrMember,
    Leader,
    LogEnd,
    Registered,
    Seen,
)
from nemesis.stage import Stage
from nemesis.words import did_you_mean

__all__ = ["condition_data", "parse_condition"]

_WORDS = (
    "isr",
    "in_isr",
    "not_in_isr",
    "leader",
    "fenced",
    "unfenced",
    "down",
    "active_controller",
    "acknowledged",
    "held",
    "seen",
    "registered",
    "log_end",
    "recovered",
)


def parse_condition(value: object, *, stage: Stage) -> Condition:
    """`{isr: {t-0: [1]}}`, `{unfenced: broker-2}`, `{acknowledged: 500}`: one word, one value."""
    if value == "recovered":
        return AllRecovered()
    if not isinstance(value, dict) or len(value) != 1:
        raise SpecError((), f"an await takes one condition; allowed: {', '.join(_WORDS)}")
    word, operand = next(iter(value.items()))
    try:
        return _parsed(str(word), operand, stage)
    except SpecError as error:
        raise error.below(str(word)) from None


def condition_data(condition: Condition) -> object:
    """The condition as a play writes it."""
    match condition:
        case Isr(members=members):
            return {"isr": {key: sorted(ids) for key, ids in members.items()}}
        case IsrMember(members=members_by_key, inside=inside):
            return {"in_isr" if inside else "not_in_isr": dict(members_by_key)}
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
        case Held(name=name, count=count):
            return {"held": name if count == 1 else {name: count}}
        case Seen(name=name, count=count):
            return {"seen": name if count == 1 else {name: count}}
        case Registered(node=node):
            return {"registered": str(node)}
        case LogEnd(key=key, node=node, offset_min=offset_min):
            return {"log_end": {key: {str(node): offset_min}}}
        case AllRecovered():
            return "recovered"


def _parsed(word: str, operand: object, stage: Stage) -> Condition:
    match word:
        case "isr":
            by_key = _by_key(operand, stage)
            return Isr(members={key: _ids(ids, key, stage) for key, ids in by_key.items()})
        case "in_isr" | "not_in_isr":
            by_key = _by_key(operand, stage)
            members = {key: _replica(one, key, stage) for key, one in by_key.items()}
            return IsrMember(members=members, inside=word == "in_isr")
        case "leader":
            by_key = _by_key(operand, stage)
            return Leader(leaders={key: _leader(one, key, stage) for key, one in by_key.items()})
        case "fenced" | "unfenced":
            return Fenced(node=_node(operand, "broker", stage.nodes), fenced=word == "fenced")
        case "registered":
            return Registered(node=_node(operand, "broker", stage.nodes))
        case "down":
            return Down(node=_node(operand, "", stage.nodes))
        case "active_controller":
            return ActiveController(node=_node(operand, "controller", stage.nodes))
        case "acknowledged":
            return Acknowledged(count=_count(operand))
        case "held" | "seen":
            name, count = _named_count(operand)
            return Held(name=name, count=count) if word == "held" else Seen(name=name, count=count)
        case "log_end":
            return _log_end(operand, stage)
        case _:
            raise SpecError((), f"unknown condition {word!r}; {did_you_mean(word, _WORDS)}")


def _named_count(operand: object) -> tuple[str, int]:
    if isinstance(operand, str):
        return operand, 1
    if not isinstance(operand, dict) or len(operand) != 1:
        raise SpecError((), f"expected a rule's name, or {{name: count}}, found {operand!r}")
    name, count = next(iter(operand.items()))
    return str(name), _count(count)


def _log_end(operand: object, stage: Stage) -> LogEnd:
    by_key = _by_key(operand, stage)
    key, by_node = next(iter(by_key.items()))
    if len(by_key) != 1 or not isinstance(by_node, dict) or len(by_node) != 1:
        raise SpecError((), "expected one replica and an offset, e.g. {t-0: {broker-2: 100}}")
    node, offset = next(iter(by_node.items()))
    return LogEnd(key=key, node=_node(node, "broker", stage.nodes), offset_min=_count(offset))


def _by_key(operand: object, stage: Stage) -> dict[str, object]:
    if not isinstance(operand, dict) or not operand:
        raise SpecError((), "expected partitions and values, e.g. {t-0: 1}")
    for key in operand:
        if key not in stage.keys:
            raise SpecError((), f"no such partition: {key!r}; there are: {', '.join(stage.keys)}")
    return {str(key): value for key, value in operand.items()}


def _ids(value: object, key: str, stage: Stage) -> frozenset[int]:
    if not isinstance(value, list):
        raise SpecError((), f"expected a list of broker numbers, found {value!r}")
    return frozenset(_replica(item, key, stage) for item in value)


def _leader(value: object, key: str, stage: Stage) -> int | None:
    return None if value is None else _replica(value, key, stage)


def _replica(value: object, key: str, stage: Stage) -> int:
    """A broker that can ever be a replica of the key, as far as the scenario says."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in stage.broker_ids:
        raise SpecError((), f"no such broker: {value!r}; there are: {list(stage.broker_ids)}")
    replicas = stage.replicas.get(key, stage.broker_ids)
    if value not in replicas:
        raise SpecError((), f"broker {value} has no replica of {key}; {list(replicas)} have")
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
