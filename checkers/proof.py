"""A proof is a rule and facts: what was compared, and with which operations, frames and offsets.

The rule is a sentence with the names of facts in braces; `Proof.sentence` is the one place where
facts become words. Readers that need more than the sentence (the page, JUnit, JSON, a test) ask for
the facts. Both are stored, so that the findings of an old run read as they did when it was checked,
whatever its check says today.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from numbers import Integral
from types import MappingProxyType
from typing import Any, Final

_NS_A_SECOND: Final = 1_000_000_000

Cited = Mapping[str, int | Iterable[int] | None] | Iterable[int]
"""Facts of a kind by their names in the rule (None is left out), or such as it does not name.

Several of one name are a list, which the rule says with commas.
"""


class FactKind(StrEnum):
    """The kind of a fact's value."""

    OPERATION = "operation"
    """The index of an operation of the history."""
    OFFSET = "offset"
    """An offset in the key's log."""
    METADATA_OFFSET = "metadata-offset"
    VALUE = "value"
    """The value of a record, or of an object."""
    FRAME = "frame"
    """The number of a frame of the tape."""
    TIME = "time"
    """Nanoseconds since the start of the run."""
    DURATION = "duration"
    """Nanoseconds."""
    MOMENT = "moment"
    """Nanoseconds of a history's clock: an order of operations rests on the last one."""
    ZOOKEEPER_ID = "zookeeper-id"
    """A zxid, the life of a znode or a session: ZooKeeper writes them in hexadecimal."""
    NUMBER = "number"
    WORD = "word"


NAMED: Final = re.compile(r"\{(\w+)\}")
"""The name of a fact in a rule."""
_SECONDS: Final = frozenset({FactKind.TIME, FactKind.DURATION})
_IN_WORDS: Final = _SECONDS | {FactKind.ZOOKEEPER_ID}
_OFFSETS: Final = frozenset({FactKind.OFFSET, FactKind.METADATA_OFFSET})
_ORIGIN_WORDS: Final = {
    kind: kind.value.replace("-", " ")
    for kind in (FactKind.OPERATION, FactKind.FRAME, FactKind.METADATA_OFFSET)
}
"""The kinds of fact that others come from, and their words in `Fact.source`."""
_ORIGINS: Final = {words: kind for kind, words in _ORIGIN_WORDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that a proof rests on."""

    kind: FactKind
    name: str
    """The name in the rule; for a fact that the rule does not name, its kind."""
    value: int | str
    source: str = ""
    """The origin of the fact, unless its kind says it: "operation 7", "metadata offset 3"."""

    @property
    def words(self) -> str:
        """The value, for people."""
        if self.kind in _SECONDS:
            return f"{int(self.value) / _NS_A_SECOND:.3f} s"
        if self.kind is FactKind.ZOOKEEPER_ID:
            return f"{int(self.value):#x}"
        return f"{_said(self)} s" if self.kind is FactKind.MOMENT else str(self.value)

    @property
    def origin(self) -> tuple[FactKind, int] | None:
        """The kind and number of its source: an operation, a frame or a metadata offset."""
        words, _, number = self.source.rpartition(" ")
        return (_ORIGINS[words], int(number)) if words in _ORIGINS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The proof of one anomaly: what a reader looks up in the history to agree."""

    rule: str
    """A sentence with the names of facts in braces."""
    facts: tuple[Fact, ...]

    @staticmethod
    def of(
        rule: str,
        /,
        *,
        operations: Cited = (),
        offsets: Cited = (),
        metadata_offsets: Cited = (),
        values: Cited = (),
        frames: Cited = (),
        times: Cited = (),
        durations: Cited = (),
        moments: Cited = (),
        zookeeper_ids: Cited = (),
        sources: Mapping[str, str] = MappingProxyType({}),
        **named: object,
    ) -> "Proof":
        """Return the proof by a rule and its facts, each kind by the names in the rule.

        A fact that the rule does not name is cited without a name. `sources`: by the name of a
        fact, the name of the operation, frame or metadata offset that it comes from. `named`:
        numbers, words and clauses; a clause is a proof whose rule stands in the place of its name.
        """
        cited = {
            FactKind.OPERATION: operations,
            FactKind.OFFSET: offsets,
            FactKind.METADATA_OFFSET: metadata_offsets,
            FactKind.VALUE: values,
            FactKind.FRAME: frames,
            FactKind.TIME: times,
            FactKind.DURATION: durations,
            FactKind.MOMENT: moments,
            FactKind.ZOOKEEPER_ID: zookeeper_ids,
        }
        facts = [
            Fact(kind=kind, name=name, value=int(value))
            for kind, all_of_it in cited.items()
            for name, value in _items(kind, all_of_it)
        ]
        clauses = {name: value for name, value in named.items() if isinstance(value, Proof)}
        plain = {name: value for name, value in named.items() if name not in clauses}
        proof = Proof(rule=rule, facts=(*facts, *_plain(plain)))
        for name, clause in clauses.items():
            proof = _with_clause(proof, name, clause)
        return _with_sources(proof, sources)

    @staticmethod
    def as_told(sentence: str, **cited: Any) -> "Proof":
        """Return the proof of a run that stored a sentence, and what was to be looked up."""
        return Proof.of(sentence.replace("{", "{{").replace("}", "}}"), **cited)

    @property
    def sentence(self) -> str:
        """The rule with its facts, for people."""
        said: dict[str, str] = {}
        lists: dict[str, list[str]] = {}
        for fact in self.facts:
            words = _said(fact)
            if said.setdefault(fact.name, words) != words:
                lists.setdefault(fact.name, [said[fact.name]]).append(words)
        for name, several in lists.items():
            said[name] = ", ".join(dict.fromkeys(several))
        return self.rule.format_map(said)

    @property
    def operations(self) -> tuple[int, ...]:
        """The operations that prove it, by index, each once."""
        return tuple(dict.fromkeys(self._numbers(FactKind.OPERATION)))

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets in the key's log, or in the metadata log where the check is about that."""
        return tuple(int(fact.value) for fact in self.facts if fact.kind in _OFFSETS)

    @property
    def values(self) -> tuple[int, ...]:
        """The values that it is about."""
        return self._numbers(FactKind.VALUE)

    @property
    def frames(self) -> tuple[int, ...]:
        """The frames of the tape, by number."""
        return self._numbers(FactKind.FRAME)

    @staticmethod
    def joined(separator: str, clauses: Iterable["Proof"]) -> "Proof":
        """Return one clause of several; of facts of one name, later ones have a number, too."""
        proof = Proof(rule="", facts=())
        for place, clause in enumerate(clauses):
            rule = proof.rule + (separator if place else "") + "{clause}"
            apart = f"{{name}}_{place + 1}"
            proof = _with_clause(replace(proof, rule=rule), "clause", clause, apart=apart)
        return proof

    def fact(self, name: str) -> int | str:
        """Return the value of the first fact of this name. Raises KeyError without such a fact."""
        for fact in self.facts:
            if fact.name == name:
                return fact.value
        raise KeyError(name)

    def further(self, rule: str, /, **named: Any) -> "Proof":
        """Return this proof with a rule that goes on, and more facts."""
        clause = Proof.of(rule, **named)
        return _with_clause(replace(self, rule=self.rule + "{further}"), "further", clause)

    def columns(self) -> dict[str, Any]:
        """Return the columns of the proof in a row of `checkers.anomaly.ANOMALIES`."""
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
        """Return the proof that a row holds; earlier versions stored a sentence and no rule."""
        if row.get("rule") is None:
            cited = {
                name: row.get(name, ()) for name in ("operations", "offsets", "values", "frames")
            }
            return Proof.as_told(row["detail"], **cited)
        facts = tuple(_stored(fact) for fact in row["facts"])
        rule = row["rule"]
        if any(fact.kind is FactKind.MOMENT for fact in facts):
            rule = rule.replace("} ns", "} s")  # of earlier versions, which said nanoseconds
        return Proof(rule=rule, facts=facts)

    def _numbers(self, kind: FactKind) -> tuple[int, ...]:
        return tuple(int(fact.value) for fact in self.facts if fact.kind is kind)


def _with_clause(proof: Proof, slot: str, clause: Proof, *, apart: str = "{slot}_{name}") -> Proof:
    """Return the proof with the clause's rule in that slot of its rule, and with its facts.

    A fact of the clause takes the place of one that was cited without a name. `apart`: the name
    of a fact of the clause if a rule would take it for another of the same name.
    """
    facts = list(proof.facts)
    named = set(NAMED.findall(proof.rule))
    said = named.union(NAMED.findall(clause.rule))
    others, values = _values_by_name(facts), _values_by_name(clause.facts)
    names = {
        name: apart.format(slot=slot, name=name)
        for name in said.intersection(others, values)
        if others[name] != values[name]
    }
    for fact in clause.facts:
        mine = replace(fact, name=names.get(fact.name, fact.name))
        cited = replace(fact, name=fact.kind.value, source="")
        if cited in facts and cited.name not in named:
            facts[facts.index(cited)] = mine
        elif mine not in facts:
            facts.append(mine)
    inner = NAMED.sub(lambda found: f"{{{names.get(found[1], found[1])}}}", clause.rule)
    return Proof(rule=proof.rule.replace(f"{{{slot}}}", inner), facts=tuple(facts))


def _values_by_name(facts: Iterable[Fact]) -> dict[str, set[int | str]]:
    values: dict[str, set[int | str]] = {}
    for fact in facts:
        values.setdefault(fact.name, set()).add(fact.value)
    return values


def _with_sources(proof: Proof, sources: Mapping[str, str]) -> Proof:
    if not sources:
        return proof
    origins = {
        fact.name: f"{_ORIGIN_WORDS[fact.kind]} {fact.value}"
        for fact in proof.facts
        if fact.kind in _ORIGIN_WORDS
    }
    facts = [
        Fact(
            kind=fact.kind,
            name=fact.name,
            value=fact.value,
            source=origins.get(sources[fact.name], ""),
        )
        if fact.name in sources
        else fact
        for fact in proof.facts
    ]
    return Proof(rule=proof.rule, facts=tuple(facts))


def _said(fact: Fact) -> str:
    """Return the value as a rule says it, which gives an interval of moments one unit."""
    if fact.kind is FactKind.MOMENT:
        return exact_seconds(int(fact.value))
    return fact.words if fact.kind in _IN_WORDS else str(fact.value)


def exact_seconds(ns: int) -> str:
    """Return `12.345`, or as many digits more as the time has: no two that differ read alike."""
    whole, rest = divmod(abs(ns), _NS_A_SECOND)
    return f"{'-' * (ns < 0)}{whole}.{f'{rest:09}'.rstrip('0'):0<3}"


def _items(kind: FactKind, cited: Cited) -> Iterator[tuple[str, int]]:
    named = cited if isinstance(cited, Mapping) else {kind.value: cited}
    for name, told in named.items():
        if isinstance(told, int):
            yield name, told
        elif told is not None:
            # An int of numpy's is neither an int of Python's nor iterable.
            values = told if isinstance(told, Iterable) else (told,)
            yield from ((name, value) for value in values)


def _plain(named: Mapping[str, object]) -> Iterator[Fact]:
    """Yield the facts of plain values: an int is a number, everything else a word."""
    for name, value in named.items():
        if isinstance(value, Integral) and not isinstance(value, bool):
            yield Fact(kind=FactKind.NUMBER, name=name, value=int(value))
        else:
            yield Fact(kind=FactKind.WORD, name=name, value=str(value))


def _stored(fact: Mapping[str, Any]) -> Fact:
    kind = FactKind(fact["kind"])
    value = fact["value"] if kind is FactKind.WORD else int(fact["value"])
    return Fact(kind=kind, name=fact["name"], value=value, source=fact["source"])
