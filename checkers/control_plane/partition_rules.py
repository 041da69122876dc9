"""The changes that a record may make to a partition: C11's rules about leaders and replicas.

Each rule compares the partition before a change with what the change makes of it, and the new
leader with its registration. `illegal_transition` says what all rules have in common.

Source: KIP-455 (reassignments), KIP-704 (recovery), KIP-841, KIP-966 (ELR).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.state import (
    BrokerRegistration,
    MetadataState,
    PartitionAtOffset,
    applied,
)
from fencepost.checkers.proof import Proof

_ELR: Final = "eligible.leader.replicas.version"
_NO_LEADER: Final = -1
_LEVEL_OF_RECOVERY: Final = 3
"""3.2-IV0: an unclean election is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A step that no rule allows."""

    key: str
    """The topic-partition or broker ("broker 2") it concerns; "" for neither."""
    clause: Proof
    """The mistake, to follow "at metadata offset 7 "; facts of the state before are `had_…`."""

    @staticmethod
    def of(key: str, rule: str, /, **facts: Any) -> "Breach":
        """Return the breach by its key and what `Proof.of` takes."""
        return Breach(key=key, clause=Proof.of(rule, **facts))


Rule = Callable[[MetadataRecord, MetadataState], Iterator[Breach]]
"""A rule: it takes a record and the state before it, and yields the breaches."""


def partition_exists(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """Check that the changed partition exists."""
    if state.partition_of(record) is None:
        key = state.key_of(record)
        yield Breach.of(key, "{key} is changed, and there is no such partition", key=key)


def new_partition(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """It is new, and begins with epochs 0."""
    if state.migrated:
        return
    key = state.key_of(record)
    if state.partition_of(record) is not None:
        yield Breach.of(key, "{key} is created, and there is such a partition", key=key)
        return
    epochs = (record.leader_epoch or 0, record.partition_epoch or 0)
    if epochs != (0, 0):
        yield Breach.of(
            key,
            "{key} begins with leader epoch {leader_epoch} and partition epoch {partition_epoch}",
            values=dict(zip(("leader_epoch", "partition_epoch"), epochs, strict=True)),
            key=key,
        )


def first_isr_serves(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """Check that the first ISR is of brokers that serve."""
    if state.migrated or state.partition_of(record) is not None:
        return
    key = state.key_of(record)
    for member in record.isr or ():
        broker = state.brokers.get(member)
        if broker is not None and not broker.active:
            yield Breach.of(
                key,
                "{key} begins with {member} in its ISR, which is {had_state}",
                values={"member": member},
                key=key,
                had_state=_inactive(broker),
            )


def _inactive(broker: BrokerRegistration) -> str:
    return "fenced" if broker.fenced else "in controlled shutdown"


def leader_registered(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """Check that the elected broker is registered."""
    if record.leader not in (None, _NO_LEADER) and record.leader not in state.brokers:
        key = state.key_of(record)
        words = "{leader} is made the leader of {key}, and is not registered"
        yield Breach.of(key, words, leader=record.leader, key=key)


def _of_change(
    rule: Callable[
        [MetadataRecord, MetadataState, PartitionAtOffset, PartitionAtOffset], Iterator[Breach]
    ],
) -> Rule:
    """Return a rule about a partition before and after a change as a rule about records."""

    @wraps(rule)
    def judged(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
        before = state.partition_of(record)
        if before is not None:
            yield from rule(record, state, before, applied(before, record))

    return judged


def _elected_serves(
    _: MetadataRecord, state: MetadataState, before: PartitionAtOffset, after: PartitionAtOffset
) -> Iterator[Breach]:
    broker = state.brokers.get(after.leader)
    if after.leader == before.leader or broker is None or broker.active:
        return
    words = "{leader} is elected the leader of {key}, and is {had_state}"
    values = {"leader": after.leader}
    yield Breach.of(before.key, words, values=values, key=before.key, had_state=_inactive(broker))


new_leader_serves: Final = _of_change(_elected_serves)
"""A broker that is elected serves."""


def _elected(
    record: MetadataRecord,
    state: MetadataState,
    before: PartitionAtOffset,
    after: PartitionAtOffset,
) -> Iterator[Breach]:
    """A new leader comes from the ISR or ELR, unless the election is said to be unclean.

    A change that completes a reassignment may elect a replica that it takes into the ISR itself.
    """
    if after.leader in (_NO_LEADER, before.leader):
        return
    key, leader = before.key, after.leader
    candidates = {*before.isr, *before.elr}
    level = state.level("metadata.version")
    recorded = level is not None and level >= _LEVEL_OF_RECOVERY
    if leader not in candidates and recorded and not after.recovering and record.replicas is None:
        yield Breach.of(
            key,
            "{leader} is elected the leader of {key}, whose ISR was {had_isr} and ELR {had_elr}, "
            "and the election is not recorded as unclean",
            values={"leader": leader},
            key=key,
            had_isr=list(before.isr),
            had_elr=list(before.elr),
        )


def _recovery(
    record: MetadataRecord, _: MetadataState, before: PartitionAtOffset, after: PartitionAtOffset
) -> Iterator[Breach]:
    """Recovery begins with an election, and the leader is alone in the ISR until it ends."""
    key = before.key
    if after.recovering and not before.recovering and record.leader is None:
        yield Breach.of(key, "{key} begins to recover without an election", key=key)
    if after.recovering and len(after.isr) > 1:
        words = "{key} recovers from an unclean election with the ISR {isr}"
        yield Breach.of(key, words, values=after.isr, key=key, isr=list(after.isr))


def _eligible_leaders(
    record: MetadataRecord,
    state: MetadataState,
    before: PartitionAtOffset,
    after: PartitionAtOffset,
) -> Iterator[Breach]:
    """Only a member of the ISR comes into the ELR, and only where the feature is on."""
    if not record.elr:
        return
    if state.level(_ELR) in (None, 0) and not before.elr:
        words = f"{{key}} is given the ELR {{elr}}, and {_ELR} is off"
        yield Breach.of(before.key, words, values=record.elr, key=before.key, elr=list(record.elr))
    strangers = sorted(set(after.elr) - {*before.isr, *before.elr})
    if strangers and record.replicas is None:
        yield Breach.of(
            before.key,
            "{strangers} come into the ELR of {key}, whose ISR was {had_isr} and ELR {had_elr}",
            values=strangers,
            strangers=strangers,
            key=before.key,
            had_isr=list(before.isr),
            had_elr=list(before.elr),
        )


def _reassigned(
    record: MetadataRecord, _: MetadataState, before: PartitionAtOffset, after: PartitionAtOffset
) -> Iterator[Breach]:
    """Check that brokers being added or removed are replicas, listed once and in one role only."""
    named = (record.replicas, record.adding, record.removing, record.isr)
    if all(one is None for one in named):
        return
    moved = {*after.adding, *after.removing}
    strange = sorted(moved - set(after.replicas))
    both = sorted(set(after.adding) & set(after.removing))
    repeats = _repeats(after.replicas) or _repeats(after.isr)
    rules: tuple[tuple[bool, str, Mapping[str, object]], ...] = (
        (bool(strange), "{strange} are added or removed, and no replicas", {"strange": strange}),
        (bool(both), "{both} are both added and removed", {"both": both}),
        (
            repeats,
            "its replicas {replicas} or its ISR {isr} name one twice",
            {"replicas": list(after.replicas), "isr": list(after.isr)},
        ),
        (not after.replicas, "it is left without replicas", {}),
    )
    for broken, words, facts in rules:
        if broken:
            yield Breach.of(before.key, "of {key}, " + words, key=before.key, **facts)


def _repeats(ids: tuple[int, ...]) -> bool:
    return len(set(ids)) != len(ids)


CHANGE: Final[tuple[Rule, ...]] = (
    new_leader_serves,
    *map(_of_change, (_elected, _recovery, _eligible_leaders, _reassigned)),
)
"""The rules for a PartitionChangeRecord."""
