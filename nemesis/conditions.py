"""What an await waits for: pure questions about one observation of the cluster and its clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusters.kafka_port import ClusterView
from clusters.port import NodeName, NodeState

__all__ = [
    "Acknowledged",
    "ActiveController",
    "AllRecovered",
    "Condition",
    "Down",
    "Fenced",
    "Held",
    "Isr",
    "IsrMember",
    "Leader",
    "LogEnd",
    "LogEnds",
    "Observation",
    "Registered",
    "Seen",
    "holds",
    "log_ends_asked",
    "rules_named",
]

LogEnds = Mapping[tuple[str, NodeName], int]
"""Log end offsets by key and broker, as they lie on the disks."""


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
    held_counts: Mapping[str, int] = field(default_factory=dict)
    """Frames held ever, by the name of the rule that is laid."""
    matched_counts: Mapping[str, int] = field(default_factory=dict)
    """Frames that a rule concerned, by its name."""
    registrations: Mapping[NodeName, int] = field(default_factory=dict)
    """Registrations that were granted to each broker since the await began."""
    log_ends: LogEnds = field(default_factory=dict)
    outsiders: frozenset[NodeName] = frozenset()
    """Nodes that are no members of the cluster now: nobody waits for them."""

    @property
    def member_ids(self) -> frozenset[int]:
        """Kafka's ids of the brokers that are members."""
        ids = self.broker_ids
        return frozenset(ids[node] for node in ids if node not in self.outsiders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isr:
    """Each key's in-sync replicas are exactly these broker ids."""

    members: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrMember:
    """In each key's ISR this broker id is, or is not; the others are free."""

    members: Mapping[str, int]
    inside: bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The rule of this name has held so many frames since it was laid."""

    name: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The rule of this name has concerned so many frames since it was laid."""

    name: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The broker was granted a registration since the await began."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """The replica of the key on this broker's disk ends at this offset or beyond."""

    key: str
    node: NodeName
    offset_min: int


Condition = (
    Isr
    | IsrMember
    | Leader
    | Fenced
    | Down
    | ActiveController
    | Acknowledged
    | Held
    | Seen
    | Registered
    | LogEnd
    | AllRecovered
)


def holds(condition: Condition, now: Observation) -> bool:
    """Whether the condition holds in this observation. Nothing metadata-like holds unseen."""
    match condition:
        case Acknowledged(count=count):
            return now.acknowledged_count >= count
        case Down(node=node):
            return now.states[node] is NodeState.DOWN
        case ActiveController(node=node):
            return now.active_controller == node
        case Held(name=name, count=count):
            return now.held_counts.get(name, 0) >= count
        case Seen(name=name, count=count):
            return now.matched_counts.get(name, 0) >= count
        case Registered(node=node):
            return now.registrations.get(node, 0) > 0
        case LogEnd(key=key, node=node, offset_min=offset_min):
            return now.log_ends.get((key, node), -1) >= offset_min
        case _:
            return now.view is not None and _holds_in(condition, now.view, now)


def rules_named(condition: Condition) -> tuple[str, ...]:
    """The rules of the wire that a condition asks about."""
    return (condition.name,) if isinstance(condition, Held | Seen) else ()


def log_ends_asked(condition: Condition) -> tuple[tuple[str, NodeName], ...]:
    """The replicas, by key and broker, whose log ends a condition asks about."""
    return ((condition.key, condition.node),) if isinstance(condition, LogEnd) else ()


def _holds_in(condition: Condition, view: ClusterView, now: Observation) -> bool:
    partitions = view.partitions
    match condition:
        case Isr(members=members):
            return all(
                key in partitions and frozenset(partitions[key].isr) == wanted
                for key, wanted in members.items()
            )
        case IsrMember(members=members_by_key, inside=inside):
            return all(
                key in partitions and (member in partitions[key].isr) is inside
                for key, member in members_by_key.items()
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
        all(
            state is NodeState.RUNNING
            for node, state in now.states.items()
            if node not in now.outsiders
        )
        and view.brokers & view.serving >= now.member_ids
        and all(
            partition.leader is not None and set(partition.isr) == set(partition.replicas)
            for partition in view.partitions.values()
        )
    )
