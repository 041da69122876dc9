"""The order in which the kinds of fault of a mix come, and its targets.

Drawn with equal chance, a short run misses many of twenty kinds, or meets nothing but the
controller. In rounds each kind comes once before any comes again, and so does each target. The
kinds that a scenario demands come first, each once.
"""

import random
from dataclasses import dataclass, field
from typing import Final

from fencepost.nemesis.mix_spec import MixSpec

_PATIENCE: Final = 10
"""The draws in a row that may begin nothing before those to come are forgotten: some kinds never
can begin (where no node of a role may be down), and they must not stop the rest."""


@dataclass(slots=True)
class Rounds:
    """What is still to come: draw a kind, then say that it came or was left out."""

    spec: MixSpec
    draw: random.Random
    _demanded: list[str] = field(init=False)
    """Demanded kinds that have not come yet."""
    _to_come: list[str] = field(default_factory=list)
    """Kinds still to come in this round."""
    _targets: list[str] = field(default_factory=list)
    """Targets still to come in this round, the next one last."""
    _in_vain: int = 0

    def __post_init__(self) -> None:
        """Begin with all the kinds that are demanded."""
        self._demanded = list(self.spec.demanded)

    @property
    def are_demanded(self) -> bool:
        """Whether the kinds that come now are those that are demanded."""
        return bool(self._demanded)

    def kind(self) -> str:
        """Draw the kind of fault that comes next."""
        if self._demanded:
            return self.draw.choice(self._demanded)
        if not self._to_come or not self.spec.rounds:
            self._to_come = list(self.spec.faults)
        return self.draw.choice(self._to_come)

    def target(self) -> str:
        """Draw the target that comes next."""
        if not self.spec.rounds:
            return self.draw.choice(self.spec.targets)
        if not self._targets:
            self._targets = self.draw.sample(self.spec.targets, len(self.spec.targets))
        return self._targets.pop()

    def over(self, kind: str) -> None:
        """Note that the turn of this kind is over."""
        (self._demanded or self._to_come).remove(kind)

    def tried(self, kind: str, *, begun: bool) -> None:
        """Note that this kind was tried once, and whether it began; if not, it may be again."""
        self._in_vain = 0 if begun else self._in_vain + 1
        if begun:
            self.over(kind)
        elif self._in_vain >= _PATIENCE:
            (self._demanded or self._to_come).clear()
            self._in_vain = 0
