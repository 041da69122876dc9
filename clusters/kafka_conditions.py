"""The conditions on a Kafka-like cluster: ISRs, leaders, fencing, registrations, logs.

`{isr: {t-0: [1]}}`, `{unfenced: broker-2}`, `{log_end: {t-0: {broker-2: 100}}}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from fencepost.clusters.kafka_port import BrokersView, Role
from fencepost.clusters.observation import Condition, Observation, Parse, count_of, node_of
from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError


@dataclass(frozen=True, slots=True, kw_only=True)
class Isr:
    """Each key's in-sync replicas are exactly these broker ids."""

    members: Mapping[str, frozenset[int]]
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: BrokersView | None = now.view
        return view is not None and all(
            key in view.partitions and frozenset(view.partitions[key].isr) == wanted
            for key, wanted in self.members.items()
        )

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"isr": {key: sorted(ids) for key, ids in self.members.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrMember:
    """This broker id is, or is not, in each key's ISR; other members are free."""

    members: Mapping[str, int]
    inside: bool
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: BrokersView | None = now.view
        return view is not None and all(
            key in view.partitions and (member in view.partitions[key].isr) is self.inside
            for key, member in self.members.items()
        )

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"in_isr" if self.inside else "not_in_isr": dict(self.members)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedBy:
    """Each key is led by this broker id (None: by none)."""

    leaders: Mapping[str, int | None]
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: BrokersView | None = now.view
        return view is not None and all(
            key in view.partitions and view.partitions[key].leader == wanted
            for key, wanted in self.leaders.items()
        )

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"leader": dict(self.leaders)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The broker is fenced (not in metadata), or unfenced (it lists itself, and so do others)."""

    node: NodeName
    fenced: bool
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: BrokersView | None = now.view
        if view is None:
            return False
        broker_id = now.broker_ids[self.node]
        if self.fenced:
            return broker_id not in view.brokers
        return broker_id in view.brokers and broker_id in view.serving

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"fenced" if self.fenced else "unfenced": str(self.node)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledBy:
    """This controller is the active one."""

    node: NodeName
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        return now.active_controller == self.node

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"active_controller": str(self.node)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The broker was granted a registration since the await began."""

    node: NodeName
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        return now.registrations.get(self.node, 0) > 0

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"registered": str(self.node)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDeleted:
    """There is no topic of this name."""

    topic: str
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        view: BrokersView | None = now.view
        return view is not None and all(
            key.rpartition("-")[0] != self.topic for key in view.partitions
        )

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"deleted": self.topic}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """The replica of the key on this broker's disk ends at this offset or beyond."""

    key: str
    node: NodeName
    offset_min: int
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        return now.log_ends.get((self.key, self.node), -1) >= self.offset_min

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"log_end": {self.key: {str(self.node): self.offset_min}}}


def _isr(_word: str, operand: object, stage: Stage) -> Condition:
    by_key = _by_key(operand, stage)
    return Isr(members={key: _ids(ids, key, stage) for key, ids in by_key.items()})


def _isr_member(word: str, operand: object, stage: Stage) -> Condition:
    by_key = _by_key(operand, stage)
    members = {key: _replica(one, key, stage) for key, one in by_key.items()}
    return IsrMember(members=members, inside=word == "in_isr")


def _leader(_word: str, operand: object, stage: Stage) -> Condition:
    by_key = _by_key(operand, stage)
    return LedBy(
        leaders={
            key: None if one is None else _replica(one, key, stage) for key, one in by_key.items()
        }
    )


def _fenced(word: str, operand: object, stage: Stage) -> Condition:
    return Fenced(node=node_of(operand, stage, role=Role.BROKER), fenced=word == "fenced")


def _registered(_word: str, operand: object, stage: Stage) -> Condition:
    return Registered(node=node_of(operand, stage, role=Role.BROKER))


def _active(_word: str, operand: object, stage: Stage) -> Condition:
    return ControlledBy(node=node_of(operand, stage, role=Role.CONTROLLER))


def _log_end(_word: str, operand: object, stage: Stage) -> Condition:
    by_key = _by_key(operand, stage)
    key, by_node = next(iter(by_key.items()))
    if len(by_key) != 1 or not isinstance(by_node, dict) or len(by_node) != 1:
        raise SpecError((), "expected one replica and an offset, e.g. {t-0: {broker-2: 100}}")
    node, offset = next(iter(by_node.items()))
    broker = node_of(node, stage, role=Role.BROKER)
    return LogEnd(key=key, node=broker, offset_min=count_of(offset))


def _deleted(_word: str, operand: object, _stage: Stage) -> Condition:
    if not isinstance(operand, str):
        raise SpecError((), f"expected the name of a topic, found {operand!r}")
    return TopicDeleted(topic=operand)


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


def _replica(value: object, key: str, stage: Stage) -> int:
    """A broker that can ever be a replica of the key, as far as the scenario says."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in stage.broker_ids:
        raise SpecError((), f"no such broker: {value!r}; there are: {list(stage.broker_ids)}")
    replicas = stage.replicas.get(key, stage.broker_ids)
    if value not in replicas:
        raise SpecError((), f"broker {value} has no replica of {key}; {list(replicas)} have")
    return value


CONDITIONS: Final[Mapping[str, Parse]] = {
    "isr": _isr,
    "in_isr": _isr_member,
    "not_in_isr": _isr_member,
    "leader": _leader,
    "fenced": _fenced,
    "unfenced": _fenced,
    "active_controller": _active,
    "registered": _registered,
    "log_end": _log_end,
    "deleted": _deleted,
}
