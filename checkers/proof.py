"""A proof is a rule and facts: what was compared, and with which operations, frames and offsets.

The rule is a sentence with the names of facts in braces; `Proof.sentence` is the one place where
facts become words. Whoever wants more than the sentence (the page, JUnit, JSON, a test) asks for
the facts. Both are stored, so that the findings of an old run read as they did when it was checked,
whatever its check says today.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from numbers import Integral
from typing import Any, Final

__all__ = ["Fact", "FactKind", "Proof", "Typed"]

_NS_A_SECOND: Final = 1_000_000_000


class FactKind(StrEnum):
    """What the value of a fact is."""

    OPERATION = "operation"
    """The index of an operation of the history."""
    OFFSET = "offset"
    """Of the key's log."""
    METADATA_OFFSET = "metadata-offset"
    VALUE = "value"
    """Of a record, or of an object."""
    FRAME = "frame"
    """The number of a frame of the tape."""
    TIME = "time"
    """Nanoseconds since the start of the run."""
    DURATION = "duration"
    """Nanoseconds."""
    NUMBER = "number"
    WORD = "word"


_SECONDS: Final = frozenset({FactKind.TIME, FactKind.DURATION})
_OFFSETS: Final = frozenset({FactKind.OFFSET, FactKind.METADATA_OFFSET})


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A value and its kind, where the type of the value does not say it."""

    kind: FactKind
    value: int
    source: str = ""

    @staticmethod
    def operation(index: int) -> "Typed":
        """An operation."""
        return Typed(kind=FactKind.OPERATION, value=index)

    @staticmethod
    def offset(offset: int, *, source: str = "") -> "Typed":
        """An offset of the key's log."""
        return Typed(kind=FactKind.OFFSET, value=offset, source=source)

    @staticmethod
    def metadata_offset(offset: int) -> "Typed":
        """An offset of the metadata log."""
        return Typed(kind=FactKind.METADATA_OFFSET, value=offset)

    @staticmethod
    def of_value(value: int, *, source: str = "") -> "Typed":
        """A value of a record or an object."""
        return Typed(kind=FactKind.VALUE, value=value, source=source)

    @staticmethod
    def frame(number: int) -> "Typed":
        """A frame of the tape."""
        return Typed(kind=FactKind.FRAME, value=number)

    @staticmethod
    def at(time_ns: int) -> "Typed":
        """A time of the run."""
        return Typed(kind=FactKind.TIME, value=time_ns)

    @staticmethod
    def lasting(duration_ns: int) -> "Typed":
        """How long something took."""
        return Typed(kind=FactKind.DURATION, value=duration_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that a proof rests on."""

    kind: FactKind
    name: str
    """In the rule; of what the rule does not name, the kind."""
    value: int | str
    source: str = ""
    """Where it is from, if not from the fact's own kind: "operation 7", "frame 3"."""

    @property
    def words(self) -> str:
        """The value, for people."""
        if self.kind in _SECONDS:
            return f"{int(self.value) / _NS_A_SECOND:.3f} s"
        return str(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Why one anomaly is one: what a reader looks up in the history to agree."""

    rule: str
    """A sentence with the names of facts in braces."""
    facts: tuple[Fact, ...]

    @staticmethod
    def of(
        rule: str,
        /,
        *,
        operations: Iterable[int] = (),
        offsets: Iterable[int] = (),
        metadata_offsets: Iterable[int] = (),
        values: Iterable[int] = (),
        frames: Iterable[int] = (),
        **named: object,
    ) -> "Proof":
        """The proof by a rule and its facts: an int is a number, a `Typed` what it says.

        `operations` and so on: what is to be looked up, too, and the rule does not name.
        """
        cited = {
            FactKind.OPERATION: operations,
            FactKind.OFFSET: offsets,
            FactKind.METADATA_OFFSET: metadata_offsets,
            FactKind.VALUE: values,
            FactKind.FRAME: frames,
        }
        return Proof(
            rule=rule,
            facts=(
                *(
                    Fact(kind=kind, name=kind.value, value=int(one))
                    for kind, all_of_it in cited.items()
                    for one in all_of_it
                ),
                *(_fact(name, value) for name, value in named.items()),
            ),
        )

    @staticmethod
    def as_told(sentence: str, **cited: Iterable[int]) -> "Proof":
        """The proof of a run that stored a sentence, and what was to be looked up."""
        return Proof.of(sentence.replace("{", "{{").replace("}", "}}"), **cited)

    @property
    def sentence(self) -> str:
        """The rule with its facts, for people."""
        return self.rule.format_map({fact.name: fact.words for fact in self.facts})

    @property
    def operations(self) -> tuple[int, ...]:
        """The operations that prove it, by index."""
        return self._numbers(FactKind.OPERATION)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Of the key's log, or of the metadata log where the check is of that."""
        return tuple(int(fact.value) for fact in self.facts if fact.kind in _OFFSETS)

    @property
    def values(self) -> tuple[int, ...]:
        """The values that it is about."""
        return self._numbers(FactKind.VALUE)

    @property
    def frames(self) -> tuple[int, ...]:
        """The frames of the tape, by number."""
        return self._numbers(FactKind.FRAME)

    def fact(self, name: str) -> int | str:
        """The value of the first fact of this name. Raises KeyError if there is none."""
        for fact in self.facts:
            if fact.name == name:
                return fact.value
        raise KeyError(name)

    def further(self, rule: str, **named: object) -> "Proof":
        """This proof with a rule that goes on, and more facts."""
        more = tuple(_fact(name, value) for name, value in named.items())
        return replace(self, rule=self.rule + rule, facts=(*self.facts, *more))

    def columns(self) -> dict[str, Any]:
        """As a row of `checkers.anomaly.ANOMALIES` has it."""
        return {
            "operations": self.operations,
            "offsets": self.offsets,
            "values": self.values,
            "frames": self.frames,
            "detail": self.sentence,
            "rule": self.rule,
            "facts": [
                {
                    "kind": fact.kind.value,
                    "name": fact.name,
                    "value": str(fact.value),
                    "source": fact.source,
                }
                for fact in self.facts
            ],
        }

    @staticmethod
    def of_columns(row: Mapping[str, Any]) -> "Proof":
        """The proof that a row holds; runs of earlier versions stored a sentence, and no rule."""
        if row.get("rule") is None:
            cited = {
                name: row.get(name, ()) for name in ("operations", "offsets", "values", "frames")
            }
            return Proof.as_told(row["detail"], **cited)
        return Proof(rule=row["rule"], facts=tuple(_stored(fact) for fact in row["facts"]))

    def _numbers(self, kind: FactKind) -> tuple[int, ...]:
        return tuple(int(fact.value) for fact in self.facts if fact.kind is kind)


def _fact(name: str, value: object) -> Fact:
    if isinstance(value, Typed):
        return Fact(kind=value.kind, name=name, value=int(value.value), source=value.source)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return Fact(kind=FactKind.NUMBER, name=name, value=int(value))
    return Fact(kind=FactKind.WORD, name=name, value=str(value))


def _stored(fact: Mapping[str, Any]) -> Fact:
    kind = FactKind(fact["kind"])
    value = fact["value"] if kind is FactKind.WORD else int(fact["value"])
    return Fact(kind=kind, name=fact["name"], value=value, source=fact["source"])
