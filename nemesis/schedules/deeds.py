"""The parts of schedules that concern the network, leaders, and what the protocol does."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from fencepost.clusters.kafka_conditions import Fenced, IsrMember, Registered
from fencepost.clusters.kafka_targets import ACTIVE_CONTROLLER
from fencepost.clusters.observation import Condition, Held, Seen
from fencepost.clusters.port import NodeName
from fencepost.nemesis.schedules.draws import Amount, Drawn, Test
from fencepost.nemesis.schedules.schedule import Schedule
from fencepost.nemesis.schedules.scope import FOLLOWER, Scope
from fencepost.nemesis.targets import ByRole, NamedNodes
from fencepost.nemesis.topology import (
    Cut,
    Flows,
    Groups,
    Isolate,
    OneWay,
    Party,
    Shape,
    Shaped,
    flows_of,
)
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.partition import Means, Partition
from fencepost.nemesis.verbs.pause import Pause, Resume
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes, Parties, Step
from fencepost.nemesis.wire.rules import Action, Clause, Delay, Direction, Hold, Match, Operator

_HOLD: Final = Hold()
_WITHIN_S: Final = 6.0
"""Longer than a session, a lease, and an election of a quick cluster."""


@dataclass(frozen=True, slots=True)
class ActOnController(Schedule):
    """A step that is done to whichever node is the active controller then."""

    told: ClassVar = "{step} active controller"
    step: type[OnNodes]

    def unfold(self, _scope: Scope, /) -> Iterator[Step]:
        """Do it."""
        yield self.step(target=ByRole(role=ACTIVE_CONTROLLER))


@dataclass(frozen=True, slots=True)
class Mend(Schedule):
    """Each node of a party that is down comes back: it is resumed, or started."""

    told: ClassVar = "start or resume {who}"
    who: str

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Mend them, in the order in which they were struck."""
        for node in [one for one in scope.down if one in scope.party(self.who)]:
            mend = Resume if scope.down.pop(node) is Pause else Start
            yield mend(target=NamedNodes(nodes=(node,)))


@dataclass(frozen=True, slots=True)
class Lead(Schedule):
    """A broker becomes the leader of the partition."""

    told: ClassVar = "move_leader to {who}"
    who: str
    within_s: float = _WITHIN_S

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Move the leadership."""
        yield MoveLeader(leaders={scope.key: scope.number(self.who)}, within_s=self.within_s)


class Event(StrEnum):
    """Something that the protocol does."""

    OUT = "out of the ISR"
    FENCED = "fenced"
    UNFENCED = "unfenced"
    REGISTERED = "registered"
    HELD = "held"
    SEEN = "seen"


@dataclass(frozen=True, slots=True)
class Until(Schedule):
    """A wait until something has happened: to a party, or to the messages of a rule."""

    told: ClassVar = "await {subject} {event}, {at_most_s} at most"
    event: Event
    subject: str
    at_most_s: float = _WITHIN_S

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Await it."""
        yield Await(condition=self._condition(scope), within_s=self.at_most_s)

    def _condition(self, scope: Scope) -> Condition:
        match self.event:
            case Event.HELD:
                return Held(name=self.subject)
            case Event.SEEN:
                return Seen(name=self.subject)
            case Event.OUT:
                return IsrMember(members={scope.key: scope.number(self.subject)}, inside=False)
            case Event.REGISTERED:
                return Registered(node=scope.node(self.subject))
            case Event.FENCED | Event.UNFENCED:
                is_fenced = self.event is Event.FENCED
                return Fenced(node=scope.node(self.subject), fenced=is_fenced)


@dataclass(frozen=True, slots=True)
class DelayOf(Amount):
    """A delay of messages: between two of these times in milliseconds."""

    told: ClassVar = "{times_ms} ms, the lower bound divided by {low_divisor}"
    times_ms: tuple[float, ...]
    low_divisor: int = 1
    """The lower bound is divided by it."""

    def drawn(self, scope: Scope) -> Delay:
        """Draw both bounds."""
        low_ms, high_ms = sorted(scope.draw.choices(self.times_ms, k=2))
        return Delay(min_ms=low_ms / self.low_divisor, max_ms=high_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch(Schedule):
    """A rule of the wire: something is done to messages of one kind, until it is lifted."""

    name: str = ""
    """Empty: the scope's label, or else one by direction and parties, of which there is one."""
    api: str | None
    action: Action | Drawn = _HOLD
    source: str | None = None
    to: str | None = None
    of_key: bool = False
    """Only messages about the partition."""
    isr: Operator | None = None
    """Only those whose ISR includes, or excludes, the follower."""
    isr_share: float = 1.0
    """How often that is asked for."""
    answers: float = 0.0
    """How often it is the answers instead, which say nothing of what they are about."""
    once: float = 0.0
    """How often it is one message alone."""

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Lay the rule."""
        where: tuple[Clause, ...] = ()
        if self.of_key:
            where = (Clause(field="key", operator=Operator.IS, value=scope.key),)
        if self.isr is not None and _by_chance(self.isr_share, scope):
            number = scope.number(FOLLOWER)
            where += (Clause(field="isr", operator=self.isr, value=number),)
        is_answer = _by_chance(self.answers, scope)
        times = 1 if _by_chance(self.once, scope) else None
        direction = Direction.RESPONSE if is_answer else Direction.REQUEST
        action = self.action.drawn(scope) if isinstance(self.action, Drawn) else self.action
        name = self.name or scope.label or self._name(direction, scope)
        if name in scope.laid:
            return
        scope.laid.append(name)
        yield Lay(
            name=name,
            action=action,
            match=Match(
                api=self.api, direction=direction, where=() if is_answer else where, times=times
            ),
            source=_ends(self.source, scope),
            target=_ends(self.to, scope),
        )

    def _name(self, direction: Direction, scope: Scope) -> str:
        ends = [scope.number(one) for one in (self.source, self.to) if one is not None]
        return "-".join(map(str, (direction, *ends)))


@dataclass(frozen=True, slots=True)
class ReleaseRule(Schedule):
    """What a rule holds arrives, or is discarded; nothing if the rule is not laid."""

    told: ClassVar = "release {name}{discard}"
    name: str = ""
    """Empty: the scope's label."""
    discard: bool = False

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Lift the rule."""
        name = self.name or scope.label
        if name in scope.laid:
            scope.laid.remove(name)
            yield Lift(name=name, discard=self.discard)


@dataclass(frozen=True, slots=True)
class ReleaseOne(Schedule):
    """What a rule holds arrives; which rule is drawn. Nothing if none is laid."""

    told: ClassVar = "{share}: release one that is held"
    share: float

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Lift one of them."""
        if scope.laid and scope.draw.random() < self.share:
            yield from ReleaseRule(scope.draw.choice(scope.laid)).unfold(scope)


@dataclass(frozen=True, slots=True)
class ReleaseAll(Schedule):
    """What all rules hold arrives."""

    told: ClassVar = "release all that is held{shuffled}"
    shuffled: bool = False
    """In a drawn order; otherwise in the order in which they were laid."""
    then: Schedule | None = None
    """What comes after each."""

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Lift them all."""
        if self.shuffled:
            scope.draw.shuffle(scope.laid)
        for name in tuple(scope.laid):
            yield from ReleaseRule(name).unfold(scope)
            if self.then is not None:
                yield from self.then.unfold(scope)


@dataclass(frozen=True, slots=True)
class IsLaid(Test):
    """Whether this rule is laid."""

    told: ClassVar = "{name} is laid"
    name: str

    def holds(self, scope: Scope) -> bool:
        """Look."""
        return self.name in scope.laid


@dataclass(frozen=True, slots=True)
class HasCuts(Test):
    """Whether there are so many partitions."""

    told: ClassVar = "there are {count_min} or more partitions"
    count_min: int

    def holds(self, scope: Scope) -> bool:
        """Count them."""
        return len(scope.cut) >= self.count_min


class CutForm(StrEnum):
    """A form of partition, between parties."""

    ISOLATED = "from all others"
    """One party, from every other node."""
    APART = "from each other"
    """Two parties."""
    ONE_WAY = "one way"
    """What the first party sends does not arrive at the second."""


@dataclass(frozen=True, slots=True)
class CutOff(Schedule):
    """A partition between parties, or of a shape whose nodes are drawn among those of a party."""

    told: ClassVar = "partition {parties}: {form}"
    form: CutForm | Shape
    parties: tuple[str, ...]
    name: str = ""
    """Empty: the scope's label."""
    by: Means | None = None
    numbered: bool = False
    """With a number behind the name, so that there can be several at once."""

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Cut the network."""
        cut = self._cut(scope)
        if scope.scene is not None:
            cut = Flows(flows=flows_of(cut, scope.scene, scope.draw))
        name = self.name or scope.label
        if self.numbered:
            scope.cut_count += 1
            name = f"{name}-{scope.cut_count}"
        scope.cut.append(name)
        yield Partition(name=name, cut=cut, by=self.by)

    def _cut(self, scope: Scope) -> Cut:
        sides = [Party(targets=tuple(map(_named, scope.party(one)))) for one in self.parties]
        match self.form:
            case CutForm.ISOLATED:
                return Isolate(party=sides[0])
            case CutForm.APART:
                return Groups(groups=tuple(sides))
            case CutForm.ONE_WAY:
                return OneWay(sender=sides[0], receiver=sides[1])
            case Shape() as shape:
                return Shaped(shape=shape, among=scope.role_of(self.parties[0]))


@dataclass(frozen=True, slots=True)
class HealCut(Schedule):
    """A partition ends, or a bound on bandwidth."""

    told: ClassVar = "heal {name}"
    name: str = ""
    """Empty: the scope's label, or else a drawn one."""

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Heal it."""
        name = self.name or scope.label or scope.draw.choice(scope.cut)
        scope.cut.remove(name)
        yield HealPartition(name=name)


def _ends(party: str | None, scope: Scope) -> Parties:
    return Parties(target=None if party is None else NamedNodes(nodes=scope.party(party)))


def _named(node: NodeName) -> NamedNodes:
    return NamedNodes(nodes=(node,))


def _by_chance(share: float, scope: Scope) -> bool:
    """Return whether it is so; only what is not certain is drawn."""
    return share >= 1 or (share > 0 and scope.draw.random() < share)
