"""The writes to topics: created, altered, given partitions, deleted, and created again.

A slot holds one topic at a time. Its name lives several lives, each with a new topic id, and then
another name takes its place. The first slot of several keeps its topic, and changes its setting all
the time: a read that is minutes old then shows it, too. The number that a setting carries grows
with every write to the name, over all its lives, so that each number says which write it is of.

After a write that may have happened or not (info) the state of its topic is uncertain: the slot
deletes it, again and again until the topic is known to be gone, and gives the name up. What was
under way may arrive later and bring it back. So the writer looks from time to time which topics
there are, and tells it here (`shown`): each that is in no slot any more is deleted, too. No name is
taken again after it was given up, so no such deletion meets a topic that is in use. A topic that
turns out to be gone (a broker that lags behind, perhaps for good, shows it) is asked about again
after twice as many looks each time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from numpy.random import Generator

from fencepost.history.operation import Outcome

LOOK_S: Final = 5.0
"""The time between two looks at the topics that there are."""
_PREFIX: Final = "m-"
_EXISTS: Final = "TOPIC_ALREADY_EXISTS"
_TRIES_MAX: Final = 4
"""Creations of a name in a further life: where ZooKeeper has the metadata, a deletion is granted
before its znodes are gone, and until then the name is taken."""
_GONE_MAX: Final = 1000
"""Names that are remembered as gone; a forgotten one is asked about once more."""
_GONE: Final = "UNKNOWN_TOPIC_OR_PARTITION"
"""The answer to the deletion of a topic that is not there."""


class MetadataF(StrEnum):
    """The effect of a write of metadata, as METADATA_WRITES and PARTITION_WRITES name it."""

    CREATE = "create-topic"
    ALTER = "alter-config"
    GROW = "create-partitions"
    DELETE = "delete-topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWrite:
    """One write to do."""

    f: MetadataF
    topic: str
    config_value: int | None
    """The number to set; None: a write that sets none."""
    partition_count: int = 1
    """The number of partitions that a creation, or a write that adds partitions, gives it."""
    replication_factor: int = 1
    """The replication factor of a creation."""

    def as_fields(self) -> dict[str, object]:
        """Return the fields of the write's row besides its topic."""
        if self.f is MetadataF.GROW:
            return {"partition_count": self.partition_count}
        return {"config_value": self.config_value}


@dataclass(slots=True, kw_only=True)
class _Slot:
    """A name and how far it is."""

    name: str
    lives_left: int
    is_kept: bool
    alters_left: int = 0
    grows_left: int = 0
    partition_count: int = 0
    is_alive: bool = False
    is_in_doubt: bool = False
    """Its topic may be there or not, and is to be deleted."""
    tries_count: int = 0
    """Creations that found the topic of the life before."""
    writes_count: int = 0


class TopicLives:
    """The topics of one writer.

    Names are numbered from `first_number` on, in steps of `stride`: writers with different first
    numbers below the stride never share a name.
    """

    def __init__(
        self,
        *,
        slots: int,
        first_number: int,
        stride: int,
        lives: int,
        alters: int,
        partitions: int,
        grows: int,
        replication_factors: range,
        draw: Generator,
    ) -> None:
        self._lives = lives
        self._alters = alters
        self._partitions = partitions
        self._grows = grows
        self._replication_factors = replication_factors
        self._draw = draw
        self._first_number = self._next_number = first_number
        self._stride = stride
        self._left_over: list[str] = []
        """The topics that were shown and are in no slot, still to be deleted."""
        self._gone: dict[str, tuple[int, int]] = {}
        """Of what was left over and turned out to be gone: how often, and the looks to let pass."""
        self._clears_now = False
        self._slots = [self._new_slot(is_kept=not place and slots > 1) for place in range(slots)]
        self._retired: list[str | None] = [None] * slots
        self._turn = 0

    @property
    def names(self) -> Sequence[str]:
        """The names worth reading: the name in each slot, and the one that was there before."""
        return [slot.name for slot in self._slots] + [name for name in self._retired if name]

    def shown(self, topics: Iterable[str]) -> None:
        """Take the topics that the cluster has, of whatever names, by one of its brokers."""
        used = {slot.name for slot in self._slots}
        self._left_over = [name for name in sorted(topics) if self._is_mine(name)]
        self._left_over = [
            name for name in self._left_over if name not in used and self._is_worth_asking(name)
        ]

    def next(self) -> TopicWrite:
        """Return the write to do now; say how it `ended` before asking for another.

        Every other write deletes what was left over, as long as there is any.
        """
        self._clears_now = bool(self._left_over) and not self._clears_now
        if self._clears_now:
            return TopicWrite(f=MetadataF.DELETE, topic=self._left_over[0], config_value=None)
        slot = self._slots[self._turn]
        if slot.is_in_doubt:
            return TopicWrite(f=MetadataF.DELETE, topic=slot.name, config_value=None)
        if not slot.is_alive:
            factors = self._replication_factors
            factor = int(self._draw.integers(factors.start, factors.stop))
            return TopicWrite(
                f=MetadataF.CREATE,
                topic=slot.name,
                config_value=slot.writes_count,
                partition_count=self._partitions,
                replication_factor=factor,
            )
        if self._is_grown_now(slot):
            return TopicWrite(
                f=MetadataF.GROW,
                topic=slot.name,
                config_value=None,
                partition_count=slot.partition_count + 1,
            )
        if slot.alters_left > 0 or slot.is_kept:
            return TopicWrite(f=MetadataF.ALTER, topic=slot.name, config_value=slot.writes_count)
        return TopicWrite(f=MetadataF.DELETE, topic=slot.name, config_value=None)

    def ended(self, write: TopicWrite, outcome: Outcome, error: str | None = None) -> None:
        """Take the outcome of the write; the next write is for another topic."""
        if self._clears_now:
            del self._left_over[0]  # the next look says whether it is there nevertheless
            if error == _GONE:
                count, _ = self._gone.pop(write.topic, (0, 0))
                self._gone[write.topic] = (count + 1, 2**count)
                if len(self._gone) > _GONE_MAX:
                    del self._gone[next(iter(self._gone))]
            return
        slot = self._slots[self._turn]
        slot.writes_count += 1  # also after a failure: a number is never written twice
        is_gone = write.f is MetadataF.DELETE and (outcome is Outcome.OK or error == _GONE)
        if outcome is Outcome.OK:
            self._done(slot, write.f)
        slot.is_in_doubt |= outcome is Outcome.INFO and not self._tries_again(slot, write, error)
        if is_gone and (slot.is_in_doubt or not slot.lives_left):
            self._retired[self._turn] = slot.name
            self._slots[self._turn] = self._new_slot(is_kept=slot.is_kept)
        self._turn = (self._turn + 1) % len(self._slots)

    def _tries_again(self, slot: _Slot, write: TopicWrite, error: str | None) -> bool:
        """Return whether the topic of the life before may just not be gone yet."""
        if write.f is not MetadataF.CREATE or error != _EXISTS or slot.lives_left == self._lives:
            return False
        slot.tries_count += 1
        return slot.tries_count < _TRIES_MAX

    def _is_worth_asking(self, name: str) -> bool:
        """Return whether to ask about a topic that is shown, by how often it turned out gone."""
        count, looks_left = self._gone.get(name, (0, 0))
        if looks_left:
            self._gone[name] = (count, looks_left - 1)
        return not looks_left

    def _is_mine(self, name: str) -> bool:
        number = name.removeprefix(_PREFIX)
        if number == name or not number.isdecimal():
            return False
        return int(number) % self._stride == self._first_number

    def _is_grown_now(self, slot: _Slot) -> bool:
        """Draw whether to add a partition; each order of the writes left is equally likely."""
        if not slot.grows_left:
            return False
        left = slot.grows_left + max(0, slot.alters_left)
        return int(self._draw.integers(left)) < slot.grows_left

    def _done(self, slot: _Slot, f: MetadataF) -> None:
        if f is MetadataF.CREATE:
            slot.is_alive, slot.lives_left = True, slot.lives_left - 1
            slot.alters_left, slot.grows_left = self._alters, self._grows
            slot.tries_count = 0
            slot.partition_count = self._partitions
        elif f is MetadataF.ALTER:
            slot.alters_left -= 1
        elif f is MetadataF.GROW:
            slot.grows_left -= 1
            slot.partition_count += 1
        else:
            slot.is_alive = False

    def _new_slot(self, *, is_kept: bool) -> _Slot:
        name = f"{_PREFIX}{self._next_number:06}"
        self._next_number += self._stride
        return _Slot(name=name, lives_left=self._lives, is_kept=is_kept)
