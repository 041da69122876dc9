"""The findings of a run: one cause, one finding, with its consequences beneath it.

One bug breaks many rules: a stale join is followed by a truncation, that by lost writes, those by
consumers that go back, and which of these show varies from run to run. So the anomalies of one
event are one finding, named by the one nearest to the cause (`checkers.entry.Nearness`); the others
are its consequences. Its identity is that check and the skeleton of the culprit: never an offset, a
time, a node or a topic, so that it is the same in the next run.

An anomaly follows from another one, which stands nearer to the cause, if

- both cite a frame of the tape, or an incarnation of a broker; or
- the nearer one is about the metadata log or an ensemble, on which all else rests, or is an earlier
  step that the log says of the same broker or partition; or
- both are about a partition, or one about its topic; or both about a broker, unless both are
  about partitions. Of those that last (a standstill) the times have to meet. Of lost records, the
  story of the loss has to hold the nearer one: it is not older than the first acknowledgement, and
  not newer than the election that did without them.

Anything else is a finding of its own, as is what follows from a finding that is known by name and
is not known itself: what is known explains nothing (`checkers.explained`). Nothing here changes
an answer. What is not spelled out (`checkers.anomaly.PROOFS_MAX`) is not counted.

Decision 62 has the reasons.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.catalogue import CATALOGUE, entry_of
from fencepost.checkers.entry import Kind, Nearness
from fencepost.checkers.known_findings import KNOWN_FINDINGS
from fencepost.checkers.losses.forensics import LOSS_CHECKS, Forensics, Loss
from fencepost.checkers.proof import NAMED, FactKind
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.verdict import Consequence, RunFinding, Validity, Verdict
from fencepost.history.manifest import Manifest

_EACH_MAX: Final = 20
"""The bound on anomalies of one check, key and rule that are looked at one by one."""
_METADATA: Final = "metadata"
_BROKER_FACTS: Final = frozenset({"broker_id", "out_broker_id"})
_NODE_FACTS: Final = frozenset({"node", "broker"})
_NODE: Final = re.compile(r"(broker|controller|server)[- ](\d+)")
_PLACES: Final = {entry.name: place for place, entry in enumerate(CATALOGUE)}
_DECIDED: Final = frozenset(
    {Nearness.QUORUM, Nearness.REGISTRATION, Nearness.REQUEST, Nearness.METADATA}
)
_OF_THE_LOG: Final = frozenset({Nearness.QUORUM, Nearness.METADATA})
"""What the log says: what is wrong with it later rests on what was wrong first."""
_HARM: Final = frozenset({Nearness.LOG, Nearness.RECORD, Nearness.CLIENT, Nearness.REMAINS})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    """Anomalies of one check, key and rule, or one of them."""

    anomaly: Anomaly
    count: int
    first_index: int
    """The row in `anomalies/<check>.parquet`."""
    nearness: Nearness
    skeleton: tuple[str, ...]
    variant: int
    """The place of its variant among those of its check, which are in order of nearness."""
    known: str | None
    everywhere: bool
    topic: str | None
    """The topic of the partition that it is about, or None."""
    nodes: frozenset[str]
    ties: frozenset[tuple[str, str]]
    """The frames of the tape and the incarnations that its proof cites."""
    offset: int | None
    """The metadata offset at which it was decided, or None."""
    span: tuple[int, int] | None
    """The first and the last time of its proof, or None."""
    lasts: bool
    """Whether its proof says how long it lasted; another decision lasts until the next one."""
    losses: tuple[Loss, ...]
    """The stories of what its partition lost; of a lost record, its own."""

    @property
    def check(self) -> str:
        return self.anomaly.check

    @property
    def key(self) -> str:
        return self.anomaly.key

    @property
    def order(self) -> tuple[int, int, int, int, tuple[str, ...], int]:
        """The nearest first; of decided steps the first: those after it go on from it.

        Nothing else that varies from run to run decides before the skeleton.
        """
        step = self.offset or 0 if self.nearness is Nearness.METADATA else 0
        place = _PLACES[self.check]
        return self.nearness, place, self.variant, step, self.skeleton, self.first_index

    def follows(self, cause: "_Met") -> bool:
        """Return whether this one follows from `cause`, which stands nearer."""
        if cause.known and not self.known:
            return False
        if self.ties & cause.ties:
            return True
        if self.check == cause.check:
            return self.nearness in _OF_THE_LOG and self.key == cause.key
        if cause.everywhere:
            return True
        if not self._is_near(cause):
            return False
        if self.nearness is Nearness.STANDSTILL and self.span and cause.span:
            if cause.nearness in _DECIDED and not cause.lasts:
                return self._stands_on(cause)
            return cause.span[0] <= self.span[1] and self.span[0] <= cause.span[1]
        if self.nearness in _HARM and cause.nearness in _DECIDED and cause.offset is not None:
            return not self.losses or any(_holds(loss, cause.offset) for loss in self.losses)
        return True

    def _stands_on(self, cause: "_Met") -> bool:
        """Return whether a standstill began in the state that a decision had left behind."""
        assert self.span is not None
        assert cause.span is not None
        if self.offset is not None and cause.offset is not None:
            return cause.offset <= self.offset
        return cause.span[0] <= self.span[1]

    def _is_near(self, cause: "_Met") -> bool:
        if cause.key in {self.key, self.topic} or self.key == cause.topic:
            return True
        partitions = cause.topic is not None and self.topic is not None
        views = {self.nearness, cause.nearness} <= {Nearness.NODE, Nearness.VIEW}
        return bool(self.nodes & cause.nodes) and (views or not partitions)


@dataclass(slots=True, kw_only=True)
class _Event:
    """The anomalies of one event, the nearest to its cause first."""

    cause: _Met
    others: list[_Met] = field(default_factory=list)

    @property
    def causes(self) -> Iterator[_Met]:
        """The anomalies of the cause's check: one request may be granted for many partitions."""
        yield self.cause
        yield from (one for one in self.others if one.check == self.cause.check)


def findings_of(
    verdict: Verdict,
    manifest: Manifest,
    anomalies: Mapping[str, pa.Table],
    forensics: Forensics | None,
) -> tuple[RunFinding, ...]:
    """Return the findings, those that are not known first, then the nearest to the cause.

    `anomalies`: ANOMALIES by check. Those that are allowed, and those of checks whose answer is
    neither invalid nor known, are no findings.
    """
    stories: dict[str, list[Loss]] = defaultdict(list)
    for loss in forensics.losses if forensics else ():
        stories[loss.key].append(loss)
    met = [
        one
        for result in verdict.checks
        if result.validity in {Validity.INVALID, Validity.KNOWN}
        and entry_of(result.check).kind is Kind.ANOMALY
        and result.check in anomalies
        for one in _met(result.check, anomalies[result.check], manifest.known, stories)
    ]
    return _told(_events(sorted(met, key=lambda one: one.order)), manifest.scenario)


def skeleton_of(anomaly: Anomaly, loss: Loss | None = None) -> tuple[str, ...]:
    """Return the skeleton of the culprit, as the check's entry describes it; of a loss, how."""
    facts = {fact.name: str(fact.value) for fact in reversed(anomaly.proof.facts)}
    for name, value in list(facts.items()):
        if found := _NODE.fullmatch(value):
            facts[f"{name}_role"] = found[1]
    entry = entry_of(anomaly.check)
    parts = [
        part.format_map(facts) for part in entry.culprit if facts.keys() >= set(NAMED.findall(part))
    ]
    said = (part for phrase, part in entry.variants.items() if phrase in anomaly.proof.rule)
    parts.extend(islice(said, 1))
    if loss is not None and loss.election is not None and loss.election.unclean:
        parts.append("unclean-election")
    return tuple(part.replace(" ", "-").replace("/", "-") for part in parts)


def _met(
    check: str,
    table: pa.Table,
    known: Sequence[str],
    stories: Mapping[str, Sequence[Loss]],
) -> Iterator[_Met]:
    groups: dict[Any, list[int]] = defaultdict(list)
    columns = (table[name].to_pylist() for name in ("key", "allowed", "rule", "offsets"))
    for row, (key, allowed, rule, offsets) in enumerate(zip(*columns, strict=True)):
        if not allowed:
            losses = stories.get(key, ()) if check in LOSS_CHECKS else ()
            groups[key, rule, _story(losses, check, offsets)].append(row)
    nearness = entry_of(check).nearness
    assert nearness is not None, check
    for (key, _, place), rows in groups.items():
        each = 1 if nearness in _HARM else _EACH_MAX
        loss = None if place is None else stories[key][place]
        told = [Anomaly.of_row(row) for row in table.take(rows[:each]).to_pylist()]
        for number, (row, anomaly) in enumerate(zip(rows, told, strict=False)):
            last = number == len(told) - 1
            yield _met_one(
                anomaly,
                count=len(rows) - number if last else 1,
                first_index=row,
                nearness=nearness,
                known=next((name for name in known if KNOWN_FINDINGS[name].covers(anomaly)), None),
                losses=(loss,) if loss else tuple(stories.get(key, ())),
                loss=loss,
            )


def _story(losses: Sequence[Loss], check: str, offsets: Sequence[int]) -> int | None:
    """Return the place of the loss that this record went with, or None."""
    for place, loss in enumerate(losses):
        first, last = loss.first_offset, loss.last_offset
        if first is None or last is None or not offsets or check not in loss.checks:
            continue
        if first <= offsets[0] <= last:
            return place
    return None


def _met_one(
    anomaly: Anomaly,
    *,
    count: int,
    first_index: int,
    nearness: Nearness,
    known: str | None,
    losses: tuple[Loss, ...],
    loss: Loss | None,
) -> _Met:
    facts, variants = anomaly.proof.facts, entry_of(anomaly.check).variants
    times = [int(fact.value) for fact in facts if fact.kind is FactKind.TIME]
    names = {fact.name for fact in facts}
    if "out_since" in names and "out_until" not in names:
        times.append(OPEN_NS)  # it was never heard again
    offsets = [fact for fact in facts if fact.kind is FactKind.METADATA_OFFSET]
    decided = [int(fact.value) for fact in offsets if fact.name == "metadata_offset"]
    topic, dash, partition = anomaly.key.rpartition("-")
    is_partition = bool(dash) and partition.isdecimal() and not _NODE.fullmatch(anomaly.key)
    return _Met(
        anomaly=anomaly,
        count=count,
        first_index=first_index,
        nearness=nearness,
        skeleton=skeleton_of(anomaly, loss),
        variant=next((place for place, one in enumerate(variants) if one in anomaly.proof.rule), 0),
        known=known,
        everywhere=anomaly.key == _METADATA or entry_of(anomaly.check).subject == "znodes",
        topic=topic if is_partition else None,
        nodes=frozenset(_nodes(anomaly)) | frozenset(_elected(losses)),
        ties=frozenset(_ties(anomaly)),
        offset=next(iter(decided or (int(fact.value) for fact in offsets)), None),
        span=(min(times), max(times)) if times else None,
        lasts=bool(names & {"out_since", "out_until"}),
        losses=losses,
    )


def _nodes(anomaly: Anomaly) -> Iterator[str]:
    if found := _NODE.fullmatch(anomaly.key):
        yield f"{found[1]}-{found[2]}"
    for fact in anomaly.proof.facts:
        if fact.name in _BROKER_FACTS:
            yield f"broker-{fact.value}"
        elif fact.name in _NODE_FACTS and fact.kind is FactKind.WORD:
            yield str(fact.value)


def _ties(anomaly: Anomaly) -> Iterator[tuple[str, str]]:
    for fact in anomaly.proof.facts:
        if fact.kind is FactKind.FRAME or fact.name == "incarnation_id":
            yield str(fact.kind), str(fact.value)


def _elected(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield the brokers that did without the records."""
    for loss in losses:
        if loss.join is not None:
            yield f"broker-{loss.join.broker_id}"
        if loss.election is not None:
            yield f"broker-{loss.election.leader}"


def _holds(loss: Loss, metadata_offset: int) -> bool:
    """Return whether the story of a loss holds this metadata offset.

    Where the metadata went back, the election that did without the records is older than the first
    of their acknowledgements: what is wrong lies between the two.
    """
    since = min((one.metadata_offset for one in loss.acknowledgements), default=0)
    until = loss.election.metadata_offset if loss.election else metadata_offset
    return min(since, until) <= metadata_offset <= max(since, until)


def _events(met: Iterable[_Met]) -> Iterable[_Event]:
    """Return the events; `met`: by nearness. Each follows from the nearest cause that it can."""
    events: list[_Event] = []
    everywhere: list[int] = []
    places: dict[Any, list[int]] = defaultdict(list)
    for one in met:
        near = {place for name in _subjects(one) for place in places[name]}
        for place in sorted(near.union(everywhere)):
            if any(map(one.follows, events[place].causes)):
                events[place].others.append(one)
                break
        else:
            place = len(events)
            events.append(_Event(cause=one))
        if one.check == events[place].cause.check:
            if one.everywhere:
                everywhere.append(place)
            for name in _subjects(one):
                places[name].append(place)
    return events


def _subjects(one: _Met) -> Iterator[Any]:
    yield one.key
    if one.topic is not None:
        yield one.topic
    yield from one.nodes
    yield from one.ties


def _told(events: Iterable[_Event], scenario: str) -> tuple[RunFinding, ...]:
    """Return the findings: the events of one identity are one."""
    by_identity: dict[tuple[str, str | None], list[_Event]] = defaultdict(list)
    for event in events:
        parts = (scenario, event.cause.check, *event.cause.skeleton)
        by_identity["/".join(parts), event.cause.known].append(event)
    found = [
        _finding(identity, known, several, scenario)
        for (identity, known), several in by_identity.items()
    ]
    return tuple(sorted(found, key=lambda one: one.known is not None))


def _finding(
    identity: str, known: str | None, events: Sequence[_Event], scenario: str
) -> RunFinding:
    cause = events[0].cause
    counts: dict[str, int] = defaultdict(int)
    for event in events:
        for one in (event.cause, *event.others):
            counts[one.check] += one.count
    count = counts.pop(cause.check)
    return RunFinding(
        identity=identity,
        check=cause.check,
        title=entry_of(cause.check).title,
        scenario=scenario,
        count=count,
        culprit=cause.skeleton,
        consequences=tuple(Consequence(check=name, count=n) for name, n in counts.items()),
        known=known,
        key=cause.key,
        first_index=cause.first_index,
    )
