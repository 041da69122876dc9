"""C11 illegal-transition: The metadata log makes a step that no rule allows.

The log of record is replayed, record by record, through a model of the controller's rules: who is
registered, at which level, fenced, unfenced or amended, and under which broker epoch; who may be
elected, how an unclean election is recorded, and who may be in the ISR meanwhile; who comes into
the ELR; what a reassignment may name; topics, partitions and producer ids are given out once;
features, and what their levels allow to be written; transactions of the log. No record may break
one.

The model (`checkers.metadata.state`) is given one record after the other; each is judged by the
rules of its type as a step from the state that the records before it add up to, and then applied,
wrong or not, so that a wrong step is told once. All rules hold for what the controllers of Kafka
3.3 to 4.3 decide. A controller decides on exactly that state, since it applies its own records as
it appends them. The records of *one* decision may not have been applied while it was made, and have
one timestamp: where that matters, a rule says so.

Sound because only what the quorum decided is judged (`checkers.metadata.log_of_record`), because
records of an aborted transaction are not in it, and because a snapshot's records are the state that
the log goes on from and no steps. A log that begins with a snapshot is not accused of what only the
absence of something could prove.

A new broker epoch is the offset at which the controller was going to write its decision. What the
same decision writes first (4.x takes a broker that went down uncleanly out of its ELRs) stands
between, with the same timestamp; so does, in 3.4.1, the control record that began its term, which
it does not count.

Where ZooKeeper has the metadata, the end of a broker's session is one transaction, and the
controller, once it knows, moves its leaderships in later ones. That a fenced broker leads nothing,
is not elected and in no first ISR is no rule there.

The rules leave out, with reasons:

- leader epoch and partition epoch are not in the records of changes: each change adds one to the
  partition epoch, and each that names a leader one to the leader epoch, whatever it says (C1 and C5
  hold the epochs that were *told* against that);
- who may join an ISR (C3), a leader outside of it (C4), its being empty, outside the replicas or in
  the ELR (C9), which have checks of their own;
- a broker that is fenced twice, or unfenced twice: 4.3.1 does so, and it changes nothing.

It cannot see what a step was asked for, only what it did: that is C1's, C2's and C13's.

Meaning: The controller has decided what its own rules forbid, and every broker follows it.
Case: a record of the metadata log that says anything
Source: KIP-455, KIP-584, KIP-631, KIP-704, KIP-730, KIP-841, KIP-868, KIP-966; `MetadataVersion`
for the levels
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow.compute as pc

from fencepost.checkers.control_plane.partition_rules import (
    CHANGE,
    Breach,
    Rule,
    first_isr_serves,
    leader_registered,
    new_leader_serves,
    new_partition,
    partition_exists,
)
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.log_of_record import LogOfRecord
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.state import BrokerRegistration, MetadataState
from fencepost.checkers.metadata.view import METADATA, MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.METADATA,
    culprit=("controller:{record}", "{step}"),
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name
_REGISTRATION: Final = "RegisterBrokerRecord"
METADATA_VERSION: Final = "metadata.version"
_SUPPORTED: Final = re.compile(r"(?:^|,)metadata\.version=(\d+)\.\.(\d+)")

_LEVEL_NEEDED: Final[Mapping[str, int]] = {
    "BrokerRegistrationChangeRecord": 6,  # 3.3-IV2
    "BeginTransactionRecord": 13,  # 3.6-IV1
    "RegisterControllerRecord": 15,  # 3.7-IV0
}
"""The metadata.version from which on a type of record may be written."""
LEVEL_OF_SHUTDOWN: Final = 7
"""3.3-IV3: controlled shutdown is recorded."""


def illegal_transitions(_: Tables, seen: MetadataView) -> Judged:
    """Find steps that no rule allows, by partition or broker. Reads `metadata_log`."""
    log = seen.log
    found: dict[str, list[Proof]] = {METADATA: []}
    case_counts: Counter[str] = Counter()
    for breaches_of_step in _judged(log, on_zookeeper=seen.facts.on_zookeeper):
        case_counts[breaches_of_step[0][0] if breaches_of_step else METADATA] += 1
        for key, proof in breaches_of_step:
            found.setdefault(key, []).append(proof)
    for key in sorted(found):
        doubt = log.doubt if key == METADATA else ""
        yield key, spelled(NAME, key, found[key], cases=case_counts[key], doubt=doubt)


def _judged(log: LogOfRecord, *, on_zookeeper: bool) -> Iterator[list[tuple[str, Proof]]]:
    """Yield for each step, in order, the breaches: (key, proof)."""
    state, earlier = MetadataState(), _last_of_earlier_batches(log)
    for record in log.records:
        if not record.snapshot and not record.control:
            whole = not log.begins_with_snapshot
            broken = [
                *(
                    (rule.__name__, rule(record, state))
                    for rule in _rules_of(record, whole=whole, on_zookeeper=on_zookeeper)
                ),
                (_old_epochs.__name__, _old_epochs(record, state, earlier)),
            ]
            yield [
                (breach.key or METADATA, _proof(record, breach, name))
                for name, breaches in broken
                for breach in breaches
            ]
        state.apply(record)


def _last_of_earlier_batches(log: LogOfRecord) -> Mapping[int, int]:
    """Return by offset of a registration, the last one before it of another batch.

    Control records are left out.
    """
    decided = log.rows.filter(pc.invert(pc.or_(log.rows["snapshot"], log.rows["control"])))
    offset = decided["metadata_offset"].to_numpy()
    stamp, epoch = decided["timestamp_ms"].to_numpy(), decided["controller_epoch"].to_numpy()
    begins = np.append(True, (np.diff(stamp) != 0) | (np.diff(epoch) != 0))[: len(offset)]
    begin = np.maximum.accumulate(np.where(begins, np.arange(len(offset)), 0))
    registered = np.flatnonzero(pc.equal(decided["type"], _REGISTRATION).to_numpy())
    return {
        int(offset[place]): int(offset[begin[place] - 1]) if begin[place] else -1
        for place in registered.tolist()
    }


def _old_epochs(
    record: MetadataRecord, state: MetadataState, earlier: Mapping[int, int]
) -> Iterator[Breach]:
    """A new broker epoch is an offset that no earlier decision was written at."""
    epoch = record.broker_epoch
    if record.type != _REGISTRATION or epoch is None or record.broker_id is None:
        return
    before = state.brokers.get(record.broker_id)
    new = before is None or epoch > before.broker_epoch
    if new and epoch <= earlier.get(record.metadata_offset, -1):
        yield Breach.of(
            f"broker {record.broker_id}",
            "broker {broker_id} registers with broker epoch {broker_epoch}, which is the offset of "
            "an earlier decision",
            values={"broker_epoch": epoch},
            broker_id=record.broker_id,
        )


def _proof(record: MetadataRecord, breach: Breach, rule: str) -> Proof:
    named = (fact.name for fact in breach.clause.facts if not fact.name.startswith("had_"))
    return Proof.of(
        "at metadata offset {metadata_offset} {breach}; the {record} breaks the rule {step}",
        metadata_offsets={"metadata_offset": record.metadata_offset},
        sources=dict.fromkeys(named, "metadata_offset"),
        breach=breach.clause,
        record=record.type,
        step=rule.strip("_").replace("_", "-"),
    )


def _rules_of(record: MetadataRecord, *, whole: bool, on_zookeeper: bool) -> Iterator[Rule]:
    """Yield the rules for a record of its type.

    `whole`: the log begins with its first record; otherwise what the state does not have may have
    been there all the same.
    """
    rules = _RULES.get(record.type, ())
    yield from (one for one in rules if not (on_zookeeper and one in _AT_ONCE))
    if whole:
        yield from _ABSENCE.get(record.type, ())
    yield _level


def _broker_key(record: MetadataRecord) -> str:
    return f"broker {record.broker_id}"


def _broker_before(record: MetadataRecord, state: MetadataState) -> BrokerRegistration | None:
    return None if record.broker_id is None else state.brokers.get(record.broker_id)


def _registration(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """A new incarnation starts fenced and serving; one that amends its registration goes on."""
    before = _broker_before(record, state)
    key, epoch = _broker_key(record), record.broker_epoch
    amended = before is not None and epoch is not None and epoch == before.broker_epoch
    if amended and before is not None and record.incarnation_id == before.incarnation_id:
        if record.fenced is not before.fenced:
            yield Breach.of(
                key,
                "broker {broker_id} amends its registration (broker epoch {broker_epoch}), and is "
                "{state} though it was {had_state}",
                values={"broker_epoch": epoch or 0},
                broker_id=record.broker_id,
                state="fenced" if record.fenced else "unfenced",
                had_state="fenced" if before.fenced else "unfenced",
            )
        return
    if record.fenced is False and not state.migrated:
        yield Breach.of(key, "broker {broker_id} registers unfenced", broker_id=record.broker_id)
    if epoch is not None and before is not None and epoch <= before.broker_epoch:
        yield Breach.of(
            key,
            "broker {broker_id} registers anew with broker epoch {broker_epoch}, which is not "
            "above {had_broker_epoch}, the one that it had",
            values={"had_broker_epoch": before.broker_epoch, "broker_epoch": epoch},
            broker_id=record.broker_id,
        )
    elif epoch is not None and epoch > record.metadata_offset:
        yield Breach.of(
            key,
            "broker {broker_id} registers with broker epoch {broker_epoch}, a later offset",
            values={"broker_epoch": epoch},
            broker_id=record.broker_id,
        )


def _knows_the_level(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """A broker is registered only if it supports the metadata.version in force."""
    level, supported = state.level(METADATA_VERSION), _SUPPORTED.search(record.value or "")
    if level is None or supported is None:
        return
    least, most = map(int, supported.groups())
    if not least <= level <= most:
        yield Breach.of(
            _broker_key(record),
            "broker {broker_id} registers (broker epoch {broker_epoch}), which supports "
            "metadata.version levels {least} to {most}, and the level in force is {had_level}",
            values={"least": least, "most": most, "had_level": level},
            broker_id=record.broker_id,
            broker_epoch=record.broker_epoch,
        )


def _same_epoch(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """A change of a registration names the one in force."""
    before = _broker_before(record, state)
    epoch = record.broker_epoch
    if before is not None and epoch is not None and epoch != before.broker_epoch:
        yield Breach.of(
            _broker_key(record),
            "a {type} names broker {broker_id} with broker epoch {broker_epoch}, which has "
            "{had_broker_epoch}",
            values={"had_broker_epoch": before.broker_epoch, "broker_epoch": epoch},
            type=record.type,
            broker_id=record.broker_id,
        )


def _registered(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if _broker_before(record, state) is None:
        yield Breach.of(
            _broker_key(record),
            "a {type} concerns broker {broker_id}, which is not registered",
            type=record.type,
            broker_id=record.broker_id,
        )


def _leads_nothing(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """The same decision takes the leaderships first, then fences."""
    if record.fenced is not True:
        return
    for partition in state.partitions.values():
        if partition.leader == record.broker_id:
            yield Breach.of(
                partition.key,
                "broker {broker_id} is fenced, and still leads {had_key}",
                values={"broker_id": partition.leader},
                had_key=partition.key,
            )


def _new_topic(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if record.topic_id in state.topics or record.topic_id in state.removed:
        yield Breach.of("", "topic id {topic_id} is given a second time", topic_id=record.topic_id)
    elif record.topic in state.topics.values():
        words = "topic {topic} is created, and there is one of that name"
        yield Breach.of("", words, topic=record.topic)


def _topic_exists(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if record.topic_id not in state.topics:
        words = "a {type} concerns topic id {topic_id}, which does not exist"
        key = state.key_of(record) if record.partition is not None else ""
        yield Breach.of(key, words, type=record.type, topic_id=record.topic_id)


def _level(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """Nothing is written that the metadata.version in force does not know."""
    level = state.level(METADATA_VERSION)
    needed = _LEVEL_NEEDED.get(record.type, 0)
    if record.in_controlled_shutdown:
        needed = max(needed, LEVEL_OF_SHUTDOWN)
    if level is not None and level < needed:
        words = "a {type} is written at metadata.version level {had_level}, below {needed}"
        values = {"had_level": level, "needed": needed}
        yield Breach.of("", words, values=values, type=record.type)


def _level_moves(record: MetadataRecord, _: MetadataState) -> Iterator[Breach]:
    """A level is a number from 0 on, and metadata.version is never taken away."""
    least = 1 if record.name == METADATA_VERSION else 0
    if record.value is not None and int(record.value) < least:
        words = "the level of {name} becomes {level}"
        yield Breach.of("", words, name=record.name, level=int(record.value))


def _quorum_level_grows(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """kraft.version cannot be taken back (KIP-853)."""
    before = state.level(record.name or "")
    if record.value is not None and before is not None and int(record.value) < before:
        words = "the level of {name} goes back from {had_level} to {level}"
        values = {"had_level": before, "level": int(record.value)}
        yield Breach.of("", words, values=values, name=record.name)


def _producer_ids_grow(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """No block of producer ids is given out twice."""
    before = state.next_producer_id
    if record.value is not None and before is not None and int(record.value) <= before:
        words = "the next producer id becomes {producer_id}, and was {had_producer_id}"
        values = {"had_producer_id": before, "producer_id": int(record.value)}
        yield Breach.of("", words, values=values)


def _not_nested(_: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if state.in_transaction:
        yield Breach.of("", "a transaction of the log begins inside another one")


def _begun(_: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if not state.in_transaction:
        yield Breach.of("", "a transaction of the log ends that had not begun")


_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "RegisterBrokerRecord": (_registration, _knows_the_level),
    "BrokerRegistrationChangeRecord": (_same_epoch, _leads_nothing),
    "FenceBrokerRecord": (_same_epoch, _leads_nothing),
    "UnfenceBrokerRecord": (_same_epoch,),
    "UnregisterBrokerRecord": (_same_epoch,),
    "TopicRecord": (_new_topic,),
    "PartitionRecord": (new_partition, first_isr_serves),
    "PartitionChangeRecord": CHANGE,
    "FeatureLevelRecord": (_level_moves,),
    "KRaftVersionRecord": (_quorum_level_grows,),
    "ProducerIdsRecord": (_same_epoch, _producer_ids_grow),
    "BeginTransactionRecord": (_not_nested,),
}
_AT_ONCE: Final = frozenset({_leads_nothing, first_isr_serves, new_leader_serves})
"""Rules for a controller that ends the sessions of brokers itself. Where ZooKeeper ends them, the
controller learns of that later."""
_ABSENCE: Final[Mapping[str, tuple[Rule, ...]]] = {
    "BrokerRegistrationChangeRecord": (_registered,),
    "FenceBrokerRecord": (_registered,),
    "UnfenceBrokerRecord": (_registered,),
    "UnregisterBrokerRecord": (_registered,),
    "ProducerIdsRecord": (_registered,),
    "RemoveTopicRecord": (_topic_exists,),
    "PartitionRecord": (_topic_exists, leader_registered),
    "PartitionChangeRecord": (partition_exists, leader_registered),
    "EndTransactionRecord": (_begun,),
}
"""Rules that rest on something's not being there."""

CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=illegal_transitions,
    ),
)
