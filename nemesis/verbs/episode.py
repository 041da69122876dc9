"""A kind of fault as a mix draws it: the nodes that it takes away, and its steps with their times.

An episode begins with a step that breaks something and ends with the one that heals it. All that is
drawn comes from the mix's random stream, in the order in which it is asked for here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.port import NodeName, role_name
from fencepost.history.failure import HarnessError
from fencepost.nemesis.schedules.schedule import DURATION, Act, Schedule, lasting
from fencepost.nemesis.schedules.scope import TARGET, Scope
from fencepost.nemesis.targets import NamedNodes, Scene, Target, resolve
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import OnNodes, Play, Step
from fencepost.nemesis.verbs.wait import Wait

Due = list[tuple[float, Step]]
"""Steps with the times, in seconds, at which they are due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeWindow:
    """A message that an episode holds, or watches for, so that faults strike meanwhile."""

    name: str
    """The name of its episode."""
    rule: str
    """The name of the rule that concerns the message."""
    kind: str
    """The message: its API and direction."""
    form: str
    """The kind of its episode."""
    key: str | None
    """The partition it was drawn for, if it is about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An episode that begins: steps with their times, or a play that waits for the protocol."""

    nodes: tuple[NodeName, ...]
    """The nodes that it takes away: they count against the budget."""
    due: Due
    play: Play = ()
    """Its names of rules and partitions are its own; the mix tells them apart."""
    window: EpisodeWindow | None = None


@dataclass(slots=True, kw_only=True)
class Opening:
    """The situation in which a mix lets an episode begin."""

    name: str
    """The name for labels, rules and partitions; of this episode alone."""
    now_s: float
    scene: Scene
    draw: Random
    aim: Random
    """Resolves targets: how much is drawn for that depends on the scene."""
    duration_s: tuple[float, float]
    gap_s: tuple[float, float]
    target: Callable[[], Target]
    """Draws one of the mix's targets."""
    free: Callable[[tuple[NodeName, ...]], tuple[NodeName, ...]]
    """Keeps those that the budget allows to be down as well."""
    roles: Collection[str]
    """The roles of which a node may be down."""
    busy: Collection[NodeName]
    """The nodes that are not whole."""
    keys: Sequence[str] = ()
    faults: Collection[str] = ()
    """All kinds of fault of the mix."""
    messages: Collection[str] = ()
    """The messages that faults may wait for; empty: any."""
    own_names: Mapping[str, str] = field(default_factory=dict)
    """The system's own names of messages, by Kafka's."""

    def scope(self, *parties: NodeName) -> Scope:
        """Return the scope in which a schedule unfolds, with these nodes as its target."""
        scope = Scope.of_scene(self.draw, self.scene, label=self.name)
        scope.bounds = {DURATION: self.duration_s, "gap": self.gap_s}
        scope.parties[TARGET] = parties
        return scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One kind of fault of a mix."""

    kind: str
    schedule: Schedule
    """What it unfolds to; of a kind that waits for a message, one of options with its name."""
    begin: Callable[[Opening], Begun | None]
    """Begins an episode; None: it cannot begin just now."""
    destructive: bool = False
    """It destroys data: it begins only when everything is whole,
    and on one node of which views show whether it has what it should have."""
    prerequisite: Prerequisite | None = None
    """Means that it takes in addition to those of its steps."""
    aimed: bool = False
    """It is done to one of the mix's targets."""
    between_nodes: bool = False
    """It is done to what nodes send each other, so that it takes two."""
    strikes: str = ""
    """The meaning of a kind that waits for messages of the protocol, in words; a mix names all such
    kinds `strikes`. Empty: it does not."""

    def example(self) -> Sequence[Step]:
        """Return the steps of one on nodes that are made up: they say what it takes."""
        nodes = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))
        ids = {node: int(node[-1]) for node in nodes[1:]}
        brokers = tuple(ids.values())
        view = ClusterView(
            time_ns=0,
            brokers=frozenset(brokers),
            serving=frozenset(brokers),
            partitions={"t-0": PartitionView(leader=1, isr=brokers, replicas=brokers)},
        )
        scene = Scene(nodes=nodes, broker_ids=ids, view=view, active_controller=nodes[0])
        draft = Opening(
            name="example",
            now_s=0.0,
            scene=scene,
            draw=Random(1),  # noqa: S311  # whatever it draws, what it takes is the same
            aim=Random(1),  # noqa: S311
            duration_s=(1.0, 1.0),
            gap_s=(1.0, 1.0),
            target=lambda: NamedNodes(nodes=nodes[1:2]),
            free=lambda wanted: wanted,
            roles=tuple(map(role_name, nodes)),
            busy=(),
            keys=("t-0",),
        )
        begun = self.begin(draft)
        assert begun is not None, f"{self.kind} begins where everything is free"
        return [*(step for _, step in begun.due), *begun.play]


def on_nodes(kind: str, schedule: Schedule, *, destructive: bool = False) -> Episode:
    """Make an episode that is done to nodes drawn by the mix's targets."""

    def begin(draft: Opening) -> Begun | None:
        try:
            wanted = resolve(draft.target(), draft.scene, draft.aim)
        except HarnessError:
            return None  # no node fits just now: the next gap brings another draw
        nodes = draft.free(wanted)
        if destructive:
            nodes = tuple(node for node in nodes if node in draft.scene.broker_ids)[:1]
        if not nodes:
            return None
        return Begun(nodes=nodes, due=timed(schedule, draft.scope(*nodes), draft.now_s))

    return Episode(kind=kind, schedule=schedule, begin=begin, destructive=destructive, aimed=True)


def on_cluster(
    kind: str,
    schedule: Schedule,
    *,
    prerequisite: Prerequisite | None = None,
    between_nodes: bool = False,
    lost: Callable[[Step, Scene], tuple[NodeName, ...]] = lambda _step, _scene: (),
) -> Episode:
    """Make an episode that finds its nodes itself; `lost`: those that its first step takes away."""

    def begin(draft: Opening) -> Begun | None:
        due = timed(schedule, draft.scope(), draft.now_s)
        nodes = lost(due[0][1], draft.scene)
        return Begun(nodes=nodes, due=due) if draft.free(nodes) == nodes else None

    return Episode(
        kind=kind,
        schedule=schedule,
        begin=begin,
        prerequisite=prerequisite,
        between_nodes=between_nodes,
    )


def until_healed(*broken: type[OnNodes], healed: type[OnNodes]) -> Schedule:
    """Return the steps that are due at once, and the one that heals them."""
    return lasting(*(Act(step, TARGET) for step in broken), healed=Act(healed, TARGET))


def timed(schedule: Schedule, scope: Scope, now_s: float) -> Due:
    """Return the steps of a schedule with their times: its waits are none of them."""
    due: Due = []
    for step in schedule.unfold(scope):
        if isinstance(step, Wait):
            now_s += step.for_s
        else:
            due.append((now_s, step))
    return due
