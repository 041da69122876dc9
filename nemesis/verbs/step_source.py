"""A step as a document has it: its word, the operand and the modifiers, read by type.

Each reader raises SpecError with the path to what it cannot read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.targets import Target, parse_target
from fencepost.nemesis.words import duration_s

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSource:
    """One step, and the stage on which it is to be played."""

    word: str
    item: Mapping[str, object]
    stage: Stage

    @property
    def operand(self) -> object:
        """Return the operand: the value of the step's word."""
        return self.item[self.word]

    @property
    def at_s(self) -> float | None:
        """The time of the play before which it is not performed."""
        return self.duration_s("at") if "at" in self.item else None

    def target(self) -> Target:
        """Read the operand as nodes."""
        return parse_target(self.operand, self.stage)

    def needed(self, key: str, parse: Callable[[object], T]) -> T:
        """Read a modifier that has to be there."""
        if key not in self.item:
            raise SpecError((), f"it needs {key!r} as well")
        return self.read(key, parse)

    def read(self, key: str, parse: Callable[[object], T]) -> T:
        """Read a modifier that is there."""
        try:
            return parse(self.item[key])
        except SpecError as error:
            raise error.below(key) from None

    def duration_s(self, key: str) -> float:
        """Read a modifier as a duration."""
        return self.read(key, duration_s)

    def flag(self, key: str, *, unless_given: bool = False) -> bool:
        """Read a modifier that is true or false."""
        value = self.item.get(key, unless_given)
        if not isinstance(value, bool):
            raise SpecError((key,), f"expected true or false, found {value!r}")
        return value

    def whole_number(self, key: str) -> int | None:
        """Read a modifier as a whole number; None if it is not there."""
        value = self.item.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise SpecError((key,), f"expected a whole number, found {value!r}")
        return value

    def name(self, otherwise: str) -> str:
        """Read the operand as the name of a rule or a partition; `otherwise`: the complaint."""
        if not isinstance(self.operand, str):
            raise SpecError((), f"{otherwise}, found {self.operand!r}")
        return self.operand
