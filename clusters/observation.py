"""A look at a cluster and its clients, and the conditions that every system's plays may await.

A condition is a pure question about one observation. What a system shows of itself is its own
(`SystemView`); the conditions that ask about that are its own, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final, Protocol

from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError

LogEnds = Mapping[tuple[str, NodeName], int]
"""Log end offsets by key and broker, as they lie on the disks."""


class RuleCounts(Protocol):
    """The counts of a rule of the wire since it was laid."""

    @property
    def held_count(self) -> int:
        """Frames that it has ever held."""

    @property
    def matched_count(self) -> int:
        """Frames that it concerned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A look at the whole: what the system, the host and the clients' segments say."""

    view: Any
    """A `SystemView`, the system's own; None: no node showed anything."""
    active_controller: NodeName | None
    """The node that leads the others, where one does."""
    states: Mapping[NodeName, NodeState]
    broker_ids: Mapping[NodeName, int]
    """The ids, in views, of the nodes that serve clients."""
    acknowledged_count: int
    """Sends acknowledged since the await began."""
    rules: Mapping[str, RuleCounts] = field(default_factory=dict)
    """The rules of the wire by name, those that were lifted, too."""
    registrations: Mapping[NodeName, int] = field(default_factory=dict)
    """Registrations granted since the await began, of the broker whose registration is awaited."""
    log_ends: LogEnds = field(default_factory=dict)
    """The log end that is awaited, if one is."""
    look_count: int = 0
    """The number of looks that have ended."""
    outsiders: frozenset[NodeName] = frozenset()
    """Nodes that are no members of the cluster now: they are not waited for."""

    @property
    def member_ids(self) -> frozenset[int]:
        """The ids of the members that serve clients."""
        ids = self.broker_ids
        return frozenset(ids[node] for node in ids if node not in self.outsiders)


def since(now: Observation, before: Observation) -> Observation:
    """Return the observation, with its counts taken since `before`."""
    return replace(
        now,
        acknowledged_count=now.acknowledged_count - before.acknowledged_count,
        registrations={
            node: count - before.registrations.get(node, 0)
            for node, count in now.registrations.items()
        },
    )


class Condition(Protocol):
    """A question that one observation answers. It does not hold of anything that no node showed."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of the wire that it asks about."""

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""

    def data(self) -> object:
        """Return the condition as a play writes it."""


Parse = Callable[[str, object, Stage], Condition]
"""A parser from a word, the value behind it, and the stage of the play. Raises SpecError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """The node has no process."""

    node: NodeName
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        return now.states[self.node] is NodeState.DOWN

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"down": str(self.node)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """At least `count` more sends were acknowledged since the await began."""

    count: int
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        return now.acknowledged_count >= self.count

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"acknowledged": self.count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The rule of this name has held at least `count` frames since it was laid."""

    name: str
    count: int = 1

    @property
    def rules(self) -> tuple[str, ...]:
        """The rule of its own name."""
        return (self.name,)

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        rule = now.rules.get(self.name)
        return rule is not None and rule.held_count >= self.count

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"held": self.name if self.count == 1 else {self.name: self.count}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The rule of this name has concerned at least `count` frames since it was laid."""

    name: str
    count: int = 1

    @property
    def rules(self) -> tuple[str, ...]:
        """The rule of its own name."""
        return (self.name,)

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        rule = now.rules.get(self.name)
        return rule is not None and rule.matched_count >= self.count

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"seen": self.name if self.count == 1 else {self.name: self.count}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file of the node's data was made, replaced or written since the await began."""

    node: NodeName
    file: str
    """Its name in the data directory, with slashes: `version-2/currentEpoch`."""
    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:  # noqa: ARG002 -- the port's
        """Return False: no look shows files. Who awaits it watches the file itself."""
        return False

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return {"changed": {str(self.node): self.file}}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRecovered:
    """Every node runs, and the system shows that it lacks nothing."""

    rules: ClassVar[tuple[str, ...]] = ()

    def holds(self, now: Observation) -> bool:
        """Return whether it holds in this observation."""
        running = all(
            state is NodeState.RUNNING
            for node, state in now.states.items()
            if node not in now.outsiders
        )
        return running and now.view is not None and now.view.is_whole(now.member_ids)

    def data(self) -> object:
        """Return the condition as a play writes it."""
        return "recovered"


def node_of(value: object, stage: Stage, *, role: str = "") -> NodeName:
    """The node of this name, of this role if one is asked for."""
    fitting = stage.node_roles.among(stage.nodes, role) if role else stage.nodes
    for node in fitting:
        if node == value:
            return node
    raise SpecError((), f"no such node: {value!r}; allowed: {', '.join(fitting)}")


def count_of(value: object) -> int:
    """A count of 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SpecError((), f"expected a count of 1 or more, found {value!r}")
    return value


def _named_count(operand: object) -> tuple[str, int]:
    if isinstance(operand, str):
        return operand, 1
    if not isinstance(operand, dict) or len(operand) != 1:
        raise SpecError((), f"expected a rule's name, or {{name: count}}, found {operand!r}")
    name, count = next(iter(operand.items()))
    return str(name), count_of(count)


def _of_frames(word: str, operand: object, _stage: Stage) -> Condition:
    name, count = _named_count(operand)
    return Held(name=name, count=count) if word == "held" else Seen(name=name, count=count)


def _changed(_word: str, operand: object, stage: Stage) -> Condition:
    if not isinstance(operand, dict) or len(operand) != 1:
        raise SpecError((), f"expected a node and a file of its data, found {operand!r}")
    node, file = next(iter(operand.items()))
    path = PurePosixPath(str(file))
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise SpecError((), f"expected a file below the node's data directory, found {file!r}")
    return Changed(node=node_of(node, stage), file=str(path))


CONDITIONS: Final[Mapping[str, Parse]] = {
    "down": lambda _word, operand, stage: Down(node=node_of(operand, stage)),
    "acknowledged": lambda _word, operand, _stage: Acknowledged(count=count_of(operand)),
    "held": _of_frames,
    "seen": _of_frames,
    "changed": _changed,
}
"""The conditions of every system, by their words; `recovered` is added to them."""
