"""One check as the catalogue describes it; and the kinds and strengths there are.

An entry is told once, by a text: the docstring of the check's module, or a text of its own where a
module has several checks. Its first line is the id, the name and the title; its first paragraph is
the rule, its last one has a line a label. What stands between them argues why the rule is sound,
and is for readers of the code alone.

    L6 unsafe-shutdown: A broker was told that it may go while it led a partition.

    The answer to a heartbeat told a broker that it may go, and …

    In a controlled shutdown the controller moves the leaderships away first …

    Meaning: A planned restart takes partitions off line.
    Case: an answer that tells a broker that it may go
    Source: KIP-631
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from inspect import cleandoc
from typing import Final, Self, TypedDict, Unpack

from fencepost.history.manifest import Promises


class Kind(StrEnum):
    """The kind of subject that an answer of the check is about."""

    ASSUMPTION = "assumption"
    """The history is what the checks take it for. Never invalid; if broken, unknown."""
    GROUND = "ground"
    """The run gives enough evidence for a verdict. Never invalid; if lacking, unknown."""
    ANOMALY = "anomaly"
    """The system kept its promises."""


class Strength(StrEnum):
    """The meaning of an anomaly's presence for the verdict."""

    NEVER = "never"
    """It makes the run invalid."""
    ALLOWED_IF = "allowed-if"
    """It makes the run invalid, unless the promises of the run allow it."""
    FIGURE = "figure"
    """It is measured, and never a verdict."""


class Nearness(IntEnum):
    """How near an anomaly stands to the cause of what happened, nearest first.

    Of the anomalies of one event, the nearest names the finding, and the others are told beneath it
    (`checkers.findings`). A breach of the control plane is the cause, the harm to clients what it
    led to. Anomalies that stand equally near are in the order of the catalogue.
    """

    QUORUM = 1
    """Nodes differ in who leads, or in what was decided: whatever is decided then rests on it."""
    REGISTRATION = 2
    """A broker id is held by the wrong process: requests are granted to whoever holds it."""
    REQUEST = 3
    """A request was granted that had to be refused, or a change made that nothing asked for."""
    METADATA = 4
    """The metadata says what no rule allows: the trace of such a grant, where none is proven."""
    NODE = 5
    """A node acts against its own metadata, or forgets them: harm comes once it is believed."""
    VIEW = 6
    """A node shows, or goes by, metadata that is out of date."""
    STANDSTILL = 7
    """The cluster stands still: a follower, a leader or a broker is kept out."""
    LOG = 8
    """A log of a server lacks or has what it must not: with it, records go."""
    RECORD = 9
    """A record, an element or a write that clients were promised is gone, or is there twice."""
    CLIENT = 10
    """The order in which one client was given what there is: whether it shows depends on when that
    client asked."""
    REMAINS = 11
    """The state that is left behind, seen by chance of when it was looked at, or what code says
    of itself when it meets that state."""


SUBJECTS: Final = {
    "A": "assumptions",
    "G": "grounds",
    "S": "service",
    "D": "data plane",
    "C": "control plane",
    "V": "visibility",
    "L": "life cycle",
    "Z": "znodes",
    "M": "open history",
}
"""The parts of the catalogue by the first letter of their ids, in order."""


_HEAD: Final = re.compile(r"([A-Z]\d+[a-z]?) ([a-z0-9-]+): (.+)\.")
_LABEL: Final = re.compile(r"^(Meaning|Allowed if|Case|Source): ", re.MULTILINE)


class _Columns(TypedDict, total=False):
    """The columns of an entry that are no prose."""

    kind: Kind
    nearness: Nearness
    culprit: tuple[str, ...]
    variants: Mapping[str, str]
    strength: Strength
    allowed_if: str
    promise: str
    rests_on: tuple[str, ...]
    rests_on_zookeeper: tuple[str, ...]
    tells_outages: bool
    needs: tuple[str, ...]
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One check; by default of an anomaly that nothing allows."""

    id: str
    name: str
    title: str
    kind: Kind = Kind.ANOMALY
    rule: str
    """The exact comparison that the check makes."""
    meaning: str
    """The meaning of an anomaly to the operator of such a cluster."""
    nearness: Nearness | None = None
    """Its place in an event; each anomaly has one."""
    culprit: tuple[str, ...] = ()
    """The skeleton of the culprit, part by part: words with the names of facts of the proof in
    braces, which say which rule was broken, by whom, and never when, where or how often. Of a fact
    that is a node, `{node_role}` is its role. A part of which a fact is not there is left out."""
    variants: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Where rules of proofs differ by what was broken: the last part of the skeleton, by a phrase
    of the rule, nearest to the cause first; the first phrase that is there decides."""
    case: str
    """The name of one case, in the singular; the verdict counts cases."""
    source: str
    strength: Strength = Strength.NEVER
    allowed_if: str = ""
    """The condition under which it is legal; empty unless the strength is `allowed-if`."""
    promise: str = ""
    """The promise of `history.manifest.Promises` without which all that it finds is legal; empty if
    no promise of the whole run decides."""
    rests_on: tuple[str, ...] = ()
    """Assumptions without which its answer is unknown."""
    rests_on_zookeeper: tuple[str, ...] = ()
    """The same, where ZooKeeper has the metadata."""
    tells_outages: bool = False
    """Its proofs tell which broker an anomaly put out, and when (`checkers.outages`)."""
    needs: tuple[str, ...] = ()
    """Tables without which it is not asked (`history.manifest.Manifest.tables`)."""
    bound: str = ""
    """The bound that it holds a run to, without which it is not asked
    (`history.manifest.Manifest.required_bounds`); empty: it has none."""

    @classmethod
    def of(cls, text: str | None, **columns: Unpack[_Columns]) -> Self:
        """Return the entry that a text tells, with the columns that are no prose.

        Raises ValueError where the text has no head, no rule, or not each label once. "Allowed if"
        may be missing; where it is told, the strength is `allowed-if`.
        """
        head, *paragraphs = cleandoc(text or "").split("\n\n")
        titled = _HEAD.fullmatch(" ".join(head.split()))
        before, *told = _LABEL.split(paragraphs[-1]) if len(paragraphs) > 1 else ("",)
        labels = {
            label.lower().replace(" ", "_"): " ".join(words.split())
            for label, words in zip(told[::2], told[1::2], strict=True)
        }
        lacking = {"meaning", "case", "source"} - labels.keys()
        if titled is None or before or lacking or len(told) != 2 * len(labels):
            raise ValueError(f"no entry of the catalogue: {head}")
        if "allowed_if" in labels:
            columns["strength"] = Strength.ALLOWED_IF
        return cls(
            id=titled[1],
            name=titled[2],
            title=titled[3],
            rule=" ".join(paragraphs[0].split()),
            **labels,
            **columns,
        )

    @property
    def subject(self) -> str:
        """The part of the catalogue that it belongs to, by the letter of its id."""
        return SUBJECTS[self.id[0]]

    def can_fail(self, promises: Promises) -> bool:
        """Return whether any finding would make a run with these promises invalid (or unknown)."""
        if self.strength is Strength.FIGURE:
            return False
        return not self.promise or getattr(promises, self.promise) not in {None, False}
