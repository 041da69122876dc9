"""The disks that a mix may let a node lose: never more than what a correct cluster survives.

What is acknowledged is on every member of the ISR. So a disk may be lost while no other one is, and
while for each of its replicas another member of the ISR goes on, or the replica is out of the ISR
anyway. From then on the lost replica is as good as none, and must not be taken for a member: until
a look that began later shows it out of every ISR, nothing is done to any other node. (A member that
is the last of its ISR stays a member though it died, and would be elected with an empty disk: by
design, in most releases.) The node may lose another disk when all it lost is back.

Nor is a disk lost while a controller is away, or one broken while a lost disk may be that of a
member: where a new controller comes into office late, the leases of all brokers run out, and the
last that it puts out of an ISR stays in it, whichever that is.

A node that is killed and started within a second is out of the ISRs for some 40 ms, between two
looks. So a registration since the loss counts, too: it ends the membership of the incarnation
before it. It is counted by whoever takes note of registrations, where looks may be late to see the
one before the loss; therefore the node has to take part by its own word as well, in a look that
began later, and next to another member that does.

Votes: a broker that is a controller, too, loses its vote and its part of the metadata log as well.
It comes back as the same voter (a static quorum; or a dynamic one, where it keeps its directory
id), and votes for whoever asks first (KIP-853 calls that unsafe). What was committed is then on the
other voters of the majority alone. So every other voter has to go on, and one of them has to lead
the quorum already: it has all that was committed, and who is in its epoch no longer asks for votes.
A voter that led, and comes back before another one does, would be told by the others that it leads,
in an epoch of which it knows nothing. Kafka's ends then.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from fencepost.clusters.kafka_port import BrokersView, PartitionView, Role
from fencepost.clusters.port import NodeName
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.verbs.registry import verb_of
from fencepost.nemesis.verbs.step import OnNodes

NEXT_LOOK: Final = 2
"""So many looks later one has begun since: one may be under way."""


Registrations = Callable[[NodeName], int]
"""Returns a number that grows with the registrations of this node that were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    looks: int
    """The count of looks at which a look has begun since the loss."""
    registrations: int


@dataclass(slots=True)
class LostDisks:
    """The disks that were lost and are not whole again."""

    _lost: dict[NodeName, _Loss] = field(default_factory=dict)
    _pending: set[NodeName] = field(default_factory=set)
    """Those of which no look has shown yet that they are out of every ISR."""

    @property
    def lost(self) -> Collection[NodeName]:
        """The nodes whose disks are not whole again."""
        return self._lost.keys()

    @property
    def pending(self) -> Collection[NodeName]:
        """The nodes that may still be taken for members of an ISR."""
        return self._pending

    def lose(self, node: NodeName, *, look_count: int, registrations: int) -> None:
        """Note that the node loses its disk now. `registrations`: those of it so far."""
        self._lost[node] = _Loss(looks=look_count + NEXT_LOOK, registrations=registrations)
        self._pending.add(node)

    def forget(self, node: NodeName) -> None:
        """Note that the loss did not come about."""
        self._lost.pop(node, None)
        self._pending.discard(node)

    def look(
        self,
        scene: Scene,
        *,
        look_count: int,
        registrations: Registrations,
        impaired: Collection[NodeName],
    ) -> None:
        """Take note of what a look shows."""
        partitions = _partitions(scene)
        for node, loss in list(self._lost.items()):
            if look_count < loss.looks or partitions is None:
                continue
            member = scene.broker_ids.get(node)
            is_new = registrations(node) > loss.registrations
            if not any(member in one.isr for one in partitions) or (
                is_new and member is not None and _is_back(member, scene, partitions)
            ):
                self._pending.discard(node)
            if node not in self._pending and node not in impaired:
                del self._lost[node]

    def hinders(self, node: NodeName, scene: Scene) -> bool:
        """Return whether a node must not be struck yet, because of a disk that another one lost."""
        if self._pending - {node}:
            return True
        return not _other_voters(node, scene).isdisjoint(self._lost)

    def may_lose(self, node: NodeName, scene: Scene, *, gone: Collection[NodeName]) -> bool:
        """Return whether this node may lose its disk. `gone`: those that do not go on."""
        partitions = _partitions(scene)
        member = scene.broker_ids.get(node)
        if self._lost.keys() - {node} or partitions is None or member is None:
            return False
        if any(Role.CONTROLLER in scene.roles.of(one) for one in gone if one != node):
            return False
        well = {
            number
            for name, number in scene.broker_ids.items()
            if name != node and name not in gone and number in scene.view.taking_part
        }
        return all(member not in one.isr or well.intersection(one.isr) for one in partitions)

    @staticmethod
    def is_led_without(node: NodeName, scene: Scene) -> bool:
        """Return whether another voter leads the quorum, if this node has a vote in it."""
        voters = _other_voters(node, scene)
        return not voters or scene.active_controller in voters


def loses_records(step: OnNodes) -> bool:
    """Return whether records that only this node has may be gone by it."""
    action = verb_of(step).action
    return action is not None and action.loses_records


def loses_vote(step: OnNodes) -> bool:
    """Return whether it is done to the disk of a node that is down, which forgets how it voted."""
    action = verb_of(step).action
    return action is not None and action.loses_records and action.needs_down


def _other_voters(node: NodeName, scene: Scene) -> frozenset[NodeName]:
    """The controllers beside a broker that is one, too; of any other node none."""
    if node not in scene.roles.second:
        return frozenset()
    return frozenset(scene.roles.among(scene.nodes, scene.roles.second[node])) - {node}


def _is_back(member: int, scene: Scene, partitions: Sequence[PartitionView]) -> bool:
    """Return whether it takes part, in no ISR but with another member that does."""
    taking_part = scene.view.taking_part
    others = taking_part - {member}
    return member in taking_part and all(
        member not in one.isr or others.intersection(one.isr) for one in partitions
    )


def _partitions(scene: Scene) -> Sequence[PartitionView] | None:
    """The partitions with several replicas: a single one is lost with its disk, whatever else.

    None where nothing was shown; none where the system has no partitions.
    """
    if scene.view is None:
        return None
    view = scene.view
    if not isinstance(view, BrokersView):
        return ()
    return [one for one in view.partitions.values() if len(one.replicas) > 1]
