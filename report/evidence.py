"""The facts of a proof as a reader looks them up: what, its value, and where it comes from.

Facts of one name and kind stand together. An operation, a frame and a metadata offset can be found
in the rest of the page; the page makes links of those that it shows.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.checkers.proof import Fact, FactKind, Proof
from fencepost.report.notation import one_line

_LISTED_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The facts of one name and kind."""

    label: str
    """The name, for people."""
    kind: FactKind
    facts: tuple[Fact, ...]
    """The first few."""
    left_out: int
    origin: tuple[FactKind, int] | None
    """The kind and number of the source; None if the kind says it, or it is not known."""

    @property
    def unit(self) -> str:
        """The kind, if the label does not say it."""
        kind = _words(self.kind.value)
        said = self.kind in _SPEAKING or kind in self.label
        return "" if said else kind

    @property
    def line(self) -> str:
        """All of it in a line, without links."""
        values = ", ".join(one_line(fact.words) for fact in self.facts)
        rest = f" and {self.left_out:,} more" if self.left_out else ""
        unit = f"{self.unit} " if self.unit else ""
        source = f" (of {_words(self.origin[0].value)} {self.origin[1]})" if self.origin else ""
        return f"{self.label}: {unit}{values}{rest}{source}"


_OFFSETS = (FactKind.OFFSET, FactKind.METADATA_OFFSET)
_SPEAKING = frozenset(FactKind) - {FactKind.OPERATION, FactKind.FRAME, *_OFFSETS}
"""Kinds of which the label or the value says enough."""


def evidence_of(proof: Proof) -> tuple[Evidence, ...]:
    """Return the facts in the order of the proof, those of one name, kind and source together."""
    grouped: dict[tuple[str, FactKind, str], list[Fact]] = {}
    for fact in proof.facts:
        grouped.setdefault((fact.name, fact.kind, fact.source), []).append(fact)
    return tuple(_evidence(facts) for facts in grouped.values())


def evidence_lines(proof: Proof) -> Iterable[str]:
    """Return the facts, a line each."""
    return (one.line for one in evidence_of(proof))


def _evidence(facts: list[Fact]) -> Evidence:
    first = facts[0]
    return Evidence(
        label=_words(first.name),
        kind=first.kind,
        facts=tuple(facts[:_LISTED_MAX]),
        left_out=max(0, len(facts) - _LISTED_MAX),
        origin=first.origin,
    )


def _words(name: str) -> str:
    return one_line(name.strip("_").replace("_", " ").replace("-", " "))
