"""Fault schedules as values: a dozen combinators, of which every random schedule is composed.

A schedule is a tree of frozen dataclasses. `unfold` yields its steps, lazily, and takes all that it
draws from one random source in the order of the tree, so that a seed says the whole schedule. What
may happen, how likely, how often and how long stands in the tree as data: it can be printed
(`nemesis.schedules.printed`), walked, and rewritten into another schedule that unfolds as well.

| value | what it unfolds to |
|---|---|
| `Then(parts)` | all parts, in order |
| `OneOf(options)` | one option, by weight, of those whose condition holds |
| `When(test, part, otherwise)` | one of the two; with `Chance(0.3)` as the test: 30 % |
| `Again(part, times)` | the part so many times, or without end |
| `Lasting(part, span)` | the part again and again until the drawn time is over |
| `NamedPart(name, part)` | the part; it is printed once |
| `Pick(name, among)` | no step: it draws who is called so from now on |
| `Name(name, among)` | no step: they are called so from now on |
| `Each(among, part)` | the part for each of them, who is called ONE meanwhile |
| `Let(name, value)` | no step: what is drawn counts until it is drawn anew |
| `WaitFor(amount)` | a wait |
| `Act(step, who)` | a step that is done to nodes |

`nemesis.schedules.deeds` adds those of the network, of leaders, and of waiting for the protocol.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import count as endless
from typing import Any, ClassVar, Final, TypeVar

from fencepost.nemesis.schedules.draws import (
    Among,
    Amount,
    AnyOf,
    Between,
    Chance,
    Drawn,
    Exactly,
    Test,
)
from fencepost.nemesis.schedules.scope import ONE, Scope
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.step import OnNodes, Step
from fencepost.nemesis.verbs.wait import Wait

S = TypeVar("S")


class Schedule(ABC):
    """A value that unfolds into steps."""

    told: ClassVar[str] = ""
    """How it is printed: its fields in braces; empty: by its docstring and all fields."""

    @abstractmethod
    def unfold(self, scope: Scope, /) -> Iterator[Step]:
        """Yield the steps of one unfolding; note in the scope what they change."""


@dataclass(frozen=True, slots=True)
class Then(Schedule):
    """All parts, in order."""

    parts: tuple[Schedule, ...]

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold each."""
        for part in self.parts:
            yield from part.unfold(scope)


NOTHING: Final = Then(())
DURATION: Final = "duration"
"""The name of the time that a fault of a mix lasts, and of its bounds in a scenario."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of `OneOf`."""

    part: Schedule
    weight: int = 1
    given: Test | None = None
    """It is left out where this does not hold."""
    label: str = ""
    """The message that it is about, of a schedule for each message."""


@dataclass(frozen=True, slots=True)
class OneOf(Schedule):
    """One of several, by weight."""

    options: tuple[Option, ...]

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold one."""
        there = [one for one in self.options if one.given is None or one.given.holds(scope)]
        drawn = scope.draw.choice([one.part for one in there for _ in range(one.weight)])
        yield from drawn.unfold(scope)


@dataclass(frozen=True, slots=True)
class When(Schedule):
    """One part if the test holds, or else the other."""

    test: Test
    part: Schedule
    otherwise: Schedule = NOTHING

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold one of them."""
        yield from (self.part if self.test.holds(scope) else self.otherwise).unfold(scope)


@dataclass(frozen=True, slots=True)
class NamedPart(Schedule):
    """A part with a name: it is printed once, however often it is there."""

    told: ClassVar = "do: {name}"
    name: str
    part: Schedule

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold it."""
        yield from self.part.unfold(scope)


@dataclass(frozen=True, slots=True)
class Again(Schedule):
    """The part so many times; None: without end."""

    told: ClassVar = "{times}"
    part: Schedule
    times: Amount | None = None

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold it again and again."""
        for _ in endless() if self.times is None else range(self.times.drawn(scope)):
            yield from self.part.unfold(scope)


@dataclass(frozen=True, slots=True)
class Lasting(Schedule):
    """The part again and again, until this time has passed; it waits on its way."""

    told: ClassVar = "again and again, for {span}"
    part: Schedule
    span: Amount

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold it again and again."""
        end_s = scope.now_s + self.span.drawn(scope)
        yield from self.part.unfold(scope)
        while scope.now_s < end_s:
            yield from self.part.unfold(scope)


@dataclass(frozen=True, slots=True)
class Pick(Schedule):
    """Draw who is called so from now on; nobody, if there is no one to draw."""

    told: ClassVar = "pick {name} among {among}{count}"
    name: str
    among: Among
    count: Amount | None = None
    """How many of them, at most; None: one."""

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Draw, and yield nothing."""
        nodes = self.among.nodes(scope)
        if self.count is not None:
            drawn = min(self.count.drawn(scope), len(nodes))
            scope.parties[self.name] = tuple(scope.draw.sample(nodes, drawn))
        else:
            scope.parties[self.name] = (scope.draw.choice(nodes),) if nodes else ()
        yield from ()


@dataclass(frozen=True, slots=True)
class PickEach(Schedule):
    """Draw different nodes, one for each name."""

    told: ClassVar = "pick {names} among {among}"
    names: tuple[str, ...]
    among: Among

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Draw, and yield nothing."""
        drawn = scope.draw.sample(self.among.nodes(scope), len(self.names))
        scope.parties.update({name: (node,) for name, node in zip(self.names, drawn, strict=True)})
        yield from ()


@dataclass(frozen=True, slots=True)
class Name(Schedule):
    """Call them so from now on."""

    told: ClassVar = "{name} is {among}"
    name: str
    among: Among

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Yield nothing."""
        scope.parties[self.name] = tuple(self.among.nodes(scope))
        yield from ()


@dataclass(frozen=True, slots=True)
class Each(Schedule):
    """The part for each of them, who is called so meanwhile."""

    told: ClassVar = "for each of {among}, as {name}"
    among: Among
    part: Schedule
    name: str = ONE

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold it for one after the other."""
        for node in self.among.nodes(scope):
            scope.parties[self.name] = (node,)
            yield from self.part.unfold(scope)


@dataclass(frozen=True, slots=True)
class Let(Schedule):
    """Draw a value, perhaps a schedule, that counts until it is drawn anew."""

    told: ClassVar = "{name} is {value}"
    name: str
    value: Amount

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Draw, and yield nothing."""
        scope.values[self.name] = self.value.drawn(scope)
        yield from ()


@dataclass(frozen=True, slots=True)
class UseDrawn(Schedule):
    """The schedule that `Let` drew under this name."""

    told: ClassVar = "do the {name}"
    name: str

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold it."""
        drawn = scope.values[self.name]
        assert isinstance(drawn, Schedule)
        yield from drawn.unfold(scope)


@dataclass(frozen=True, slots=True)
class WaitFor(Schedule):
    """A wait, in seconds."""

    told: ClassVar = "wait {time}"
    time: Amount

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Draw how long."""
        for_s = self.time.drawn(scope)
        scope.now_s += for_s
        yield Wait(for_s=for_s)


@dataclass(frozen=True, slots=True)
class Act(Schedule):
    """A step that is done to nodes; they are down from then on, as far as the schedule knows."""

    told: ClassVar = "{step} {who}{of}"
    step: type[OnNodes]
    who: str
    of: tuple[tuple[str, Any], ...] = ()
    """Further fields of the step, with their values or what draws them."""

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Do it."""
        nodes = scope.party(self.who)
        for node in nodes:
            scope.down.setdefault(node, self.step)
        own = {k: v.drawn(scope) if isinstance(v, Amount) else v for k, v in self.of}
        yield self.step(target=NamedNodes(nodes=nodes), **own)


@dataclass(frozen=True, slots=True)
class Do(Schedule):
    """A step as it is."""

    step: Step

    def unfold(self, _scope: Scope, /) -> Iterator[Step]:
        """Do it."""
        yield self.step


FOR_A_DRAWN_TIME: Final = Let(DURATION, Between(stated=DURATION))


def then(*parts: Schedule) -> Then:
    """Return all parts, in order."""
    return Then(parts)


def one_of(*options: Schedule | tuple[int, Schedule]) -> OneOf:
    """Return one of these, each by its weight; 1 if it is not stated."""
    weighed = ((1, one) if isinstance(one, Schedule) else one for one in options)
    return OneOf(tuple(Option(part, weight) for weight, part in weighed))


def maybe(share: float, *parts: Schedule, otherwise: Schedule = NOTHING) -> When:
    """Return the parts with this probability."""
    return When(Chance(share), Then(parts), otherwise)


def wait(*seconds: float) -> WaitFor:
    """Return a wait of one of these lengths."""
    return WaitFor(AnyOf(seconds) if len(seconds) > 1 else Exactly(seconds[0]))


def lasting(*parts: Schedule, healed: Schedule) -> Then:
    """Return the parts, and what heals them after the duration that a scenario states."""
    return Then((FOR_A_DRAWN_TIME, *parts, WaitFor(Drawn(DURATION)), healed))


def unfolded(schedule: Schedule, scope: Scope) -> tuple[Step, ...]:
    """Return all steps of a schedule that ends."""
    return tuple(schedule.unfold(scope))


def walk(schedule: object) -> Iterator[Any]:
    """Yield every value of the tree, each before those below it."""
    yield schedule
    for part in _below(schedule):
        yield from walk(part)


def rewritten(schedule: S, change: Callable[[Any], Any]) -> S:
    """Return the tree with each value changed, those below it first.

    `change` returns the value itself where it leaves it. A search that mutates schedules needs no
    more than this and `walk`.
    """
    made: Any = schedule
    if isinstance(made, tuple):
        made = tuple(rewritten(one, change) for one in made)
    elif _is_value(made):
        own = {one.name: rewritten(getattr(made, one.name), change) for one in fields(made)}
        made = replace(made, **own)
    return change(made)  # type: ignore[no-any-return]


def _below(value: Any) -> Iterator[object]:
    if isinstance(value, tuple):
        yield from value
    elif _is_value(value):
        yield from (getattr(value, one.name) for one in fields(value))


def _is_value(value: object) -> bool:
    return isinstance(value, Schedule | Amount | Test | Among | Option)
