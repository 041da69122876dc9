"""The leaves of schedules that yield no step: nodes, what is drawn, and what is asked.

An `Among` lists nodes, an `Amount` is drawn, a `Test` is answered; each of them in the scope of one
unfolding, and from its random source alone.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.clusters.port import NodeName
from fencepost.nemesis.schedules.scope import DOWN, Scope


class Amount(ABC):
    """A value that is drawn."""

    told: ClassVar[str] = ""
    """How it is printed: its fields in braces; empty: by its docstring and all fields."""

    @abstractmethod
    def drawn(self, scope: Scope, /) -> Any:
        """Draw it."""


class Test(ABC):
    """A question that is answered while the schedule unfolds."""

    told: ClassVar[str] = ""
    """How it is printed: its fields in braces; empty: by its docstring and all fields."""
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

    told: ClassVar = "{value}"
    value: Any

    def drawn(self, _scope: Scope, /) -> Any:
        """Return it; nothing is drawn."""
        return self.value


@dataclass(frozen=True, slots=True)
class AnyOf(Amount):
    """One of these values, each as often as it is there."""

    told: ClassVar = "one of {values}"
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

    told: ClassVar = "{values}, give or take a half"
    values: tuple[float, ...]

    def drawn(self, scope: Scope) -> float:
        """Choose one, and vary it."""
        return float(scope.draw.choice(self.values) * (0.5 + scope.draw.random()))


@dataclass(frozen=True, slots=True)
class Exponential(Amount):
    """A time between two events that come at random, with this mean."""

    told: ClassVar = "a random time, {mean} in the mean"
    mean: Amount

    def drawn(self, scope: Scope) -> float:
        """Draw one."""
        return scope.draw.expovariate(1 / self.mean.drawn(scope))


@dataclass(frozen=True, slots=True)
class Drawn(Amount):
    """What `Let` drew under this name."""

    told: ClassVar = "the {name}"
    name: str

    def drawn(self, scope: Scope) -> Any:
        """Return it; nothing is drawn."""
        return scope.values[self.name]


@dataclass(frozen=True, slots=True)
class Label(Amount):
    """The label of the scope: the name of what a mix draws."""

    told: ClassVar = "its own"

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
class EnoughNodes(Test):
    """Whether there are so many such nodes."""

    among: Among
    count_min: int = 1

    def holds(self, scope: Scope) -> bool:
        """Count them."""
        return len(self.among.nodes(scope)) >= self.count_min


@dataclass(frozen=True, slots=True)
class MixDraws(Test):
    """Whether the mix that it is a part of draws this kind of fault, too."""

    told: ClassVar = "the mix draws {kind}, too"
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


def is_down(party: str) -> Test:
    """Return whether the party was struck, and not mended."""
    return EnoughNodes(Among((party,), only=(DOWN,)))


def same(party: str, other: str) -> Test:
    """Return whether a node of both is there."""
    return EnoughNodes(Among((party,), only=(other,)))
