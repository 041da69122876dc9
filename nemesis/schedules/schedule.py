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
| `Repeat(part, times)` | the part so many times, or without end |
| `Lasting(part, span)` | the part again and again until the drawn time is over |
| `Pick(name, among)` | no step: it draws who is called so from now on |
| `Name(name, among)` | no step: they are called so from now on |
| `Each(among, part)` | the part for each of them, who is called ONE meanwhile |
| `Let(name, value)` | no step: what is drawn counts until it is drawn anew |
| `WaitFor(amount)` | a wait |
| `Act(step, who)` | a step that is done to nodes |

`nemesis.schedules.deeds` adds those of the network, of leaders, and of waiting for the protocol.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import count as endless
from typing import Any, Final, TypeVar

from clusters.port import NodeName
from nemesis.schedules.scope import DOWN, ONE, Scope
from nemesis.targets import NamedNodes
from nemesis.verbs.step import OnNodes, Step
from nemesis.verbs.wait import Wait

S = TypeVar("S")


class Schedule(ABC):
    """A value that unfolds into steps."""

    @abstractmethod
    def unfold(self, scope: Scope, /) -> Iterator[Step]:
        """Yield the steps of one unfolding; note in the scope what they change."""


class Amount(ABC):
    """A value that is drawn."""

    @abstractmethod
    def drawn(self, scope: Scope, /) -> Any:
        """Draw it."""


class Test(ABC):
    """A question that is answered while the schedule unfolds."""

    __test__ = False  # it is none of pytest's

    @abstractmethod
    def holds(self, scope: Scope) -> bool:
        """Answer it, now."""


@dataclass(frozen=True, slots=True)
class Among:
    """The nodes of several parties; a party that is there several times counts as often."""

    parties: tuple[str, ...]
    but_not: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """Only nodes that are of one of these parties as well; empty: any."""

    def nodes(self, scope: Scope) -> list[NodeName]:
        """List them, as they are now."""
        out = {node for name in self.but_not for node in scope.party(name)}
        inside = {node for name in self.only for node in scope.party(name)}
        return [
            node
            for name in self.parties
            for node in scope.party(name)
            if node not in out and (not self.only or node in inside)
        ]


@dataclass(frozen=True, slots=True)
class Exactly(Amount):
    """A value that is known."""

    value: Any

    def drawn(self, _scope: Scope, /) -> Any:
        """Return it; nothing is drawn."""
        return self.value


@dataclass(frozen=True, slots=True)
class AnyOf(Amount):
    """One of these values, each as often as it is there."""

    values: tuple[Any, ...]

    def drawn(self, scope: Scope) -> Any:
        """Choose one."""
        return scope.draw.choice(self.values)


@dataclass(frozen=True, slots=True)
class Between(Amount):
    """A number between two, or between the bounds that a scenario states by this name."""

    low: float = 0.0
    high: float = 0.0
    stated: str = ""
    digits: int | None = None

    def drawn(self, scope: Scope) -> float:
        """Draw one, each with equal chance."""
        low, high = scope.bounds[self.stated] if self.stated else (self.low, self.high)
        found = scope.draw.uniform(low, high)
        return found if self.digits is None else round(found, self.digits)


@dataclass(frozen=True, slots=True)
class GiveOrTakeHalf(Amount):
    """One of these numbers, times a half to one and a half."""

    values: tuple[float, ...]

    def drawn(self, scope: Scope) -> float:
        """Choose one, and vary it."""
        return float(scope.draw.choice(self.values) * (0.5 + scope.draw.random()))


@dataclass(frozen=True, slots=True)
class Exponential(Amount):
    """A time between two events that come at random, with this mean."""

    mean: Amount

    def drawn(self, scope: Scope) -> float:
        """Draw one."""
        return scope.draw.expovariate(1 / self.mean.drawn(scope))


@dataclass(frozen=True, slots=True)
class Drawn(Amount):
    """What `Let` drew under this name."""

    name: str

    def drawn(self, scope: Scope) -> Any:
        """Return it; nothing is drawn."""
        return scope.values[self.name]


@dataclass(frozen=True, slots=True)
class Label(Amount):
    """The label of the scope: the name of what a mix draws."""

    def drawn(self, scope: Scope) -> str:
        """Return it; nothing is drawn."""
        return scope.label


@dataclass(frozen=True, slots=True)
class Chance(Test):
    """True with this probability."""

    share: float | Drawn

    def holds(self, scope: Scope) -> bool:
        """Draw the answer."""
        share = self.share.drawn(scope) if isinstance(self.share, Drawn) else self.share
        return bool(scope.draw.random() < share)


@dataclass(frozen=True, slots=True)
class Exists(Test):
    """Whether there are so many such nodes."""

    among: Among
    count_min: int = 1

    def holds(self, scope: Scope) -> bool:
        """Count them."""
        return len(self.among.nodes(scope)) >= self.count_min


@dataclass(frozen=True, slots=True)
class MixDraws(Test):
    """Whether the mix that it is a part of draws this kind of fault, too."""

    kind: str

    def holds(self, scope: Scope) -> bool:
        """Look."""
        return self.kind in scope.faults


@dataclass(frozen=True, slots=True)
class Not(Test):
    """True if the other test is not."""

    test: Test

    def holds(self, scope: Scope) -> bool:
        """Ask the other test."""
        return not self.test.holds(scope)


@dataclass(frozen=True, slots=True)
class Every(Test):
    """True if all of these are; those after the first that is not are not asked."""

    tests: tuple[Test, ...]

    def holds(self, scope: Scope) -> bool:
        """Ask one after the other."""
        return all(test.holds(scope) for test in self.tests)


@dataclass(frozen=True, slots=True)
class Either(Test):
    """True if one of these is; those after the first that is are not asked."""

    tests: tuple[Test, ...]

    def holds(self, scope: Scope) -> bool:
        """Ask one after the other."""
        return any(test.holds(scope) for test in self.tests)


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
class Repeat(Schedule):
    """The part so many times; None: without end."""

    part: Schedule
    times: Amount | None = None

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold it again and again."""
        for _ in endless() if self.times is None else range(self.times.drawn(scope)):
            yield from self.part.unfold(scope)


@dataclass(frozen=True, slots=True)
class Lasting(Schedule):
    """The part again and again, until this time has passed; it waits on its way."""

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

    name: str
    among: Among

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Yield nothing."""
        scope.parties[self.name] = tuple(self.among.nodes(scope))
        yield from ()


@dataclass(frozen=True, slots=True)
class Each(Schedule):
    """The part for each of them, who is called so meanwhile."""

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

    name: str
    value: Amount

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Draw, and yield nothing."""
        scope.values[self.name] = self.value.drawn(scope)
        yield from ()


@dataclass(frozen=True, slots=True)
class Use(Schedule):
    """The schedule that `Let` drew under this name."""

    name: str

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Unfold it."""
        drawn = scope.values[self.name]
        assert isinstance(drawn, Schedule)
        yield from drawn.unfold(scope)


@dataclass(frozen=True, slots=True)
class WaitFor(Schedule):
    """A wait, in seconds."""

    time: Amount

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Draw how long."""
        for_s = self.time.drawn(scope)
        scope.now_s += for_s
        yield Wait(for_s=for_s)


@dataclass(frozen=True, slots=True)
class Act(Schedule):
    """A step that is done to nodes; they are down from then on, as far as the schedule knows."""

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


def is_down(party: str) -> Test:
    """Return whether the party was struck, and not mended."""
    return Exists(Among((party,), only=(DOWN,)))


def same(party: str, other: str) -> Test:
    """Return whether a node of both is there."""
    return Exists(Among((party,), only=(other,)))


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
    if isinstance(schedule, tuple):
        made: Any = tuple(rewritten(one, change) for one in schedule)
    elif _is_value(schedule):
        made = replace(
            schedule,
            **{f.name: rewritten(getattr(schedule, f.name), change) for f in fields(schedule)},
        )  # type: ignore[type-var]
    else:
        made = schedule
    return change(made)  # type: ignore[no-any-return]


def seeded(seed: object) -> random.Random:
    """Return a random source to unfold with; it is to be repeated, not kept secret."""
    return random.Random(seed)  # type: ignore[arg-type]  # noqa: S311


def _below(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        yield from value
    elif _is_value(value):
        yield from (getattr(value, f.name) for f in fields(value))  # type: ignore[arg-type]


def _is_value(value: object) -> bool:
    return isinstance(value, Schedule | Amount | Test | Among | Option)
