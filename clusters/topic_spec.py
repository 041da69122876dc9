"""A topic to create, and the keys of its partitions: what Kafka takes for one, whatever asks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fencepost.history.failure import Mistakes

_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka takes for the name of a topic (`org.apache.kafka.common.internals.Topic`)."""
_PARTITIONS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic to create: `assignment` (by partition, broker numbers, leader first) or counts."""

    name: str
    partitions: int = 1
    replication_factor: int = 3
    assignment: tuple[tuple[int, ...], ...] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raise SpecError, with the paths of the keys, for a topic that no cluster can have.

        A count is checked before anything is made for each partition.
        """
        mistakes = Mistakes()
        if not _TOPIC_NAME.fullmatch(self.name) or self.name in (".", ".."):
            found = f"found {self.name!r:.80}"
            mistakes.note(
                ("name",), f"expected 1 to 249 of A-Z, a-z, 0-9, '.', '_' and '-', {found}"
            )
        if not 1 <= self.partitions <= _PARTITIONS_MAX:
            found = f"expected 1 to {_PARTITIONS_MAX} partitions, found {self.partitions}"
            mistakes.note(("partitions",), found)
        mistakes.refuse()

    @property
    def keys(self) -> tuple[str, ...]:
        """The topic's keys, `name-partition`, in order."""
        count = self.partitions if self.assignment is None else len(self.assignment)
        return tuple(f"{self.name}-{partition}" for partition in range(count))


def keys_of(topics: Iterable[TopicSpec]) -> tuple[str, ...]:
    """Return the keys of all topics, in order."""
    return tuple(key for topic in topics for key in topic.keys)
