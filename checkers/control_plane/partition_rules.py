"""The changes that a record may make to a partition: C11's rules about leaders and replicas.

Each rule compares the partition before a change with what the change makes of it, and the new
leader with its registration. `metadata_rules` says what all rules have in common.

Source: KIP-455 (reassignments), KIP-704 (recovery), KIP-841, KIP-966 (ELR).
"""

from collections.abc import Callable, Iterator
from typing import Final

from checkers.control_plane.breach import Breach, Rule
from checkers.metadata.records import MetadataRecord
from checkers.metadata.state import Broker, MetadataState, PartitionAtOffset, applied

__all__ = ["CHANGE", "leader_registered", "new_partition", "partition_exists"]

_ELR: Final = "eligible.leader.replicas.version"
_NO_LEADER: Final = -1
_LEVEL_OF_RECOVERY: Final = 3
"""3.2-IV0: an unclean election is recorded."""


def partition_exists(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """Check that the changed partition exists."""
    if state.partition_of(record) is None:
        key = state.key_of(record)
        yield Breach(key=key, words=f"{key} is changed, and there is no such partition")


def new_partition(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """It is new, begins with epochs 0, and its first ISR is of brokers that serve."""
    if state.migrated:
        return
    key = state.key_of(record)
    if state.partition_of(record) is not None:
        yield Breach(key=key, words=f"{key} is created, and there is such a partition")
        return
    epochs = (record.leader_epoch or 0, record.partition_epoch or 0)
    if epochs != (0, 0):
        words = f"{key} begins with leader epoch {epochs[0]} and partition epoch {epochs[1]}"
        yield Breach(key=key, words=words, values=epochs)
    for member in record.isr or ():
        broker = state.brokers.get(member)
        if broker is not None and not broker.active:
            words = f"{key} begins with {member} in its ISR, which is {_inactive(broker)}"
            yield Breach(key=key, words=words, values=(member,))


def _inactive(broker: Broker) -> str:
    return "fenced" if broker.fenced else "in controlled shutdown"


def leader_registered(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """Check that the elected broker is registered."""
    if record.leader not in (None, _NO_LEADER) and record.leader not in state.brokers:
        key = state.key_of(record)
        words = f"{record.leader} is made the leader of {key}, and is not registered"
        yield Breach(key=key, words=words)


def _of_change(
    rule: Callable[
        [MetadataRecord, MetadataState, PartitionAtOffset, PartitionAtOffset], Iterator[Breach]
    ],
) -> Rule:
    """Return a rule about a partition before and after a change as a rule about records."""

    def judged(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
        before = state.partition_of(record)
        if before is not None:
            yield from rule(record, state, before, applied(before, record))

    return judged


def _elected(
    record: MetadataRecord,
    state: MetadataState,
    before: PartitionAtOffset,
    after: PartitionAtOffset,
) -> Iterator[Breach]:
    """A new leader serves; and it comes from the ISR or ELR, unless it is said to be unclean.

    A change that completes a reassignment may elect a replica that it takes into the ISR itself.
    """
    if after.leader in (_NO_LEADER, before.leader):
        return
    key, leader = before.key, after.leader
    broker = state.brokers.get(leader)
    if broker is not None and not broker.active:
        words = f"{leader} is elected the leader of {key}, and is {_inactive(broker)}"
        yield Breach(key=key, words=words, values=(leader,))
    candidates = {*before.isr, *before.elr}
    level = state.level("metadata.version")
    recorded = level is not None and level >= _LEVEL_OF_RECOVERY
    if leader not in candidates and recorded and not after.recovering and record.replicas is None:
        words = (
            f"{leader} is elected the leader of {key}, whose ISR was {list(before.isr)} and ELR "
            f"{list(before.elr)}, and the election is not recorded as unclean"
        )
        yield Breach(key=key, words=words, values=(leader,))


def _recovery(
    record: MetadataRecord, _: MetadataState, before: PartitionAtOffset, after: PartitionAtOffset
) -> Iterator[Breach]:
    """Recovery begins with an election, and the leader is alone in the ISR until it ends."""
    key = before.key
    if after.recovering and not before.recovering and record.leader is None:
        yield Breach(key=key, words=f"{key} begins to recover without an election")
    if after.recovering and len(after.isr) > 1:
        words = f"{key} recovers from an unclean election with the ISR {list(after.isr)}"
        yield Breach(key=key, words=words, values=after.isr)


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
        words = f"{before.key} is given the ELR {list(record.elr)}, and {_ELR} is off"
        yield Breach(key=before.key, words=words, values=record.elr)
    strangers = sorted(set(after.elr) - {*before.isr, *before.elr})
    if strangers and record.replicas is None:
        words = (
            f"{strangers} come into the ELR of {before.key}, whose ISR was {list(before.isr)} and "
            f"ELR {list(before.elr)}"
        )
        yield Breach(key=before.key, words=words, values=tuple(strangers))


def _reassigned(
    record: MetadataRecord, _: MetadataState, before: PartitionAtOffset, after: PartitionAtOffset
) -> Iterator[Breach]:
    """Check that brokers being added or removed are replicas, listed once and in one role only."""
    named = (record.replicas, record.adding, record.removing, record.isr)
    if all(one is None for one in named):
        return
    moved = {*after.adding, *after.removing}
    for words in (
        f"{sorted(moved - set(after.replicas))} are added or removed, and no replicas"
        if moved - set(after.replicas)
        else "",
        f"{sorted(set(after.adding) & set(after.removing))} are both added and removed"
        if set(after.adding) & set(after.removing)
        else "",
        f"its replicas {list(after.replicas)} or its ISR {list(after.isr)} name one twice"
        if _repeats(after.replicas) or _repeats(after.isr)
        else "",
        "" if after.replicas else "it is left without replicas",
    ):
        if words:
            yield Breach(key=before.key, words=f"of {before.key}, {words}")


def _repeats(ids: tuple[int, ...]) -> bool:
    return len(set(ids)) != len(ids)


CHANGE: Final[tuple[Rule, ...]] = tuple(
    map(_of_change, (_elected, _recovery, _eligible_leaders, _reassigned))
)
"""The rules for a PartitionChangeRecord."""
