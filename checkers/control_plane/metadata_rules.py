"""C11's rules, one by one: the changes that a record may make to the state before it.

Each rule is given a record and the state before it, and says in words what is wrong, or nothing.
All of them hold for what the controllers of Kafka 3.3 to 4.3 decide. A controller decides on
exactly the state that the records before the decision add up to, since it applies its own records
as it appends them. The records of *one* decision may not have been applied while it was made, and
have one timestamp: where that matters, a rule says so.

The rules leave out, with reasons:

- leader epoch and partition epoch are not in the records of changes: each change adds one to the
  partition epoch, and each that names a leader one to the leader epoch, whatever it says (C1 and C5
  hold the epochs that were *told* against that);
- who may join an ISR (C3), a leader outside of it (C4), its being empty, outside the replicas or in
  the ELR (C9), which have checks of their own;
- a broker that is fenced twice, or unfenced twice: 4.3.1 does so, and it changes nothing.

Source: KIP-584 (features), KIP-631, KIP-730 (producer ids), KIP-841, KIP-868; `MetadataVersion`
for the levels.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from checkers.control_plane.breach import Breach, Rule
from checkers.control_plane.partition_rules import (
    CHANGE,
    leader_registered,
    new_partition,
    partition_exists,
)
from checkers.metadata.records import MetadataRecord
from checkers.metadata.state import Broker, MetadataState

__all__ = ["breaches"]

_METADATA_VERSION: Final = "metadata.version"
_SUPPORTED: Final = re.compile(r"(?:^|,)metadata\.version=(\d+)\.\.(\d+)")

_LEVEL_NEEDED: Final[Mapping[str, int]] = {
    "BrokerRegistrationChangeRecord": 6,  # 3.3-IV2
    "BeginTransactionRecord": 13,  # 3.6-IV1
    "RegisterControllerRecord": 15,  # 3.7-IV0
}
"""The metadata.version from which on a type of record may be written."""
_LEVEL_OF_SHUTDOWN: Final = 7
"""3.3-IV3: controlled shutdown is recorded."""


def breaches(record: MetadataRecord, state: MetadataState, *, whole: bool) -> Iterator[Breach]:
    """Yield what is wrong with a record, as the step after `state`.

    `whole`: the log begins with its first record; otherwise what `state` does not have may have
    been there all the same.
    """
    for rule in _RULES.get(record.type, ()):
        yield from rule(record, state)
    for rule in _ABSENCE.get(record.type, ()) if whole else ():
        yield from rule(record, state)
    yield from _level(record, state)


def _broker_key(record: MetadataRecord) -> str:
    return f"broker {record.broker_id}"


def _broker_before(record: MetadataRecord, state: MetadataState) -> Broker | None:
    return None if record.broker_id is None else state.brokers.get(record.broker_id)


def _registration(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """A new incarnation starts fenced and serving; one that amends its registration goes on."""
    before = _broker_before(record, state)
    key, epoch = _broker_key(record), record.broker_epoch
    amended = before is not None and epoch is not None and epoch == before.broker_epoch
    if amended and before is not None and record.incarnation_id == before.incarnation_id:
        if record.fenced is not before.fenced:
            words = (
                f"broker {record.broker_id} amends its registration (broker epoch {epoch}), and is "
                f"{'fenced' if record.fenced else 'unfenced'} though it was "
                f"{'fenced' if before.fenced else 'unfenced'}"
            )
            yield Breach(key=key, words=words, values=(epoch or 0,))
        return
    if record.fenced is False and not state.migrated:
        yield Breach(key=key, words=f"broker {record.broker_id} registers unfenced")
    if epoch is not None and before is not None and epoch <= before.broker_epoch:
        words = (
            f"broker {record.broker_id} registers anew with broker epoch {epoch}, which is not "
            f"above {before.broker_epoch}, the one that it had"
        )
        yield Breach(key=key, words=words, values=(before.broker_epoch, epoch))
    elif epoch is not None and epoch > record.metadata_offset:
        words = f"broker {record.broker_id} registers with broker epoch {epoch}, a later offset"
        yield Breach(key=key, words=words, values=(epoch,))


def _knows_the_level(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """A broker is registered only if it supports the metadata.version in force."""
    level, supported = state.level(_METADATA_VERSION), _SUPPORTED.search(record.value or "")
    if level is None or supported is None:
        return
    least, most = map(int, supported.groups())
    if not least <= level <= most:
        words = (
            f"broker {record.broker_id} registers (broker epoch {record.broker_epoch}), which "
            f"supports metadata.version levels {least} to {most}, and the level in force is {level}"
        )
        yield Breach(key=_broker_key(record), words=words, values=(least, most, level))


def _same_epoch(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """A change of a registration names the one in force."""
    before = _broker_before(record, state)
    epoch = record.broker_epoch
    if before is not None and epoch is not None and epoch != before.broker_epoch:
        words = (
            f"a {record.type} names broker {record.broker_id} with broker epoch {epoch}, which has "
            f"{before.broker_epoch}"
        )
        yield Breach(key=_broker_key(record), words=words, values=(before.broker_epoch, epoch))


def _registered(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if _broker_before(record, state) is None:
        words = f"a {record.type} concerns broker {record.broker_id}, which is not registered"
        yield Breach(key=_broker_key(record), words=words)


def _leads_nothing(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """The same decision takes the leaderships first, then fences."""
    if record.fenced is not True:
        return
    for partition in state.partitions.values():
        if partition.leader == record.broker_id:
            words = f"broker {record.broker_id} is fenced, and still leads {partition.key}"
            yield Breach(key=partition.key, words=words, values=(partition.leader,))


def _new_topic(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if record.topic_id in state.topics or record.topic_id in state.removed:
        yield Breach(key="", words=f"topic id {record.topic_id} is given a second time")
    elif record.topic in state.topics.values():
        words = f"topic {record.topic} is created, and there is one of that name"
        yield Breach(key="", words=words)


def _topic_exists(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if record.topic_id not in state.topics:
        words = f"a {record.type} concerns topic id {record.topic_id}, which there is not"
        key = state.key_of(record) if record.partition is not None else ""
        yield Breach(key=key, words=words)


def _level(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """Nothing is written that the metadata.version in force does not know."""
    level = state.level(_METADATA_VERSION)
    needed = _LEVEL_NEEDED.get(record.type, 0)
    if record.in_controlled_shutdown:
        needed = max(needed, _LEVEL_OF_SHUTDOWN)
    if level is not None and level < needed:
        words = f"a {record.type} is written at metadata.version level {level}, below {needed}"
        yield Breach(key="", words=words, values=(level, needed))


def _level_moves(record: MetadataRecord, _: MetadataState) -> Iterator[Breach]:
    """A level is a number from 0 on, and metadata.version is never taken away."""
    least = 1 if record.name == _METADATA_VERSION else 0
    if record.value is not None and int(record.value) < least:
        yield Breach(key="", words=f"the level of {record.name} becomes {record.value}")


def _quorum_level_grows(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """kraft.version cannot be taken back (KIP-853)."""
    before = state.level(record.name or "")
    if record.value is not None and before is not None and int(record.value) < before:
        words = f"the level of {record.name} goes back from {before} to {record.value}"
        yield Breach(key="", words=words, values=(before, int(record.value)))


def _producer_ids_grow(record: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    """No block of producer ids is given out twice."""
    before = state.next_producer_id
    if record.value is not None and before is not None and int(record.value) <= before:
        words = f"the next producer id becomes {record.value}, and was {before}"
        yield Breach(key="", words=words, values=(before, int(record.value)))


def _not_nested(_: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if state.in_transaction:
        yield Breach(key="", words="a transaction of the log begins inside another one")


def _begun(_: MetadataRecord, state: MetadataState) -> Iterator[Breach]:
    if not state.in_transaction:
        yield Breach(key="", words="a transaction of the log ends that had not begun")


_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "RegisterBrokerRecord": (_registration, _knows_the_level),
    "BrokerRegistrationChangeRecord": (_same_epoch, _leads_nothing),
    "FenceBrokerRecord": (_same_epoch, _leads_nothing),
    "UnfenceBrokerRecord": (_same_epoch,),
    "UnregisterBrokerRecord": (_same_epoch,),
    "TopicRecord": (_new_topic,),
    "PartitionRecord": (new_partition,),
    "PartitionChangeRecord": CHANGE,
    "FeatureLevelRecord": (_level_moves,),
    "KRaftVersionRecord": (_quorum_level_grows,),
    "ProducerIdsRecord": (_same_epoch, _producer_ids_grow),
    "BeginTransactionRecord": (_not_nested,),
}
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
