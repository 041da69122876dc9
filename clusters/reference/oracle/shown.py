"""What brokers show of the metadata: lowest acknowledged offsets, reads, writes and API levels.

What is demanded of reads holds from LEVEL_VISIBILITY on. A write counts as acknowledged from the
moment at which the controller answers it: later reads reach brokers that have applied it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from clusters.reference.levels import LEVEL_VISIBILITY
from clusters.reference.oracle.decided import Decided, Problem
from clusters.reference.oracle.finding import Nodes

__all__ = ["Shown"]


@dataclass(slots=True)
class Shown:
    """The ghost of what was shown and promised."""

    decided: Decided
    nodes: Nodes
    _told: dict[int, int] = field(default_factory=dict)
    """The highest lowest acknowledged offset that each broker was told."""
    _shown_max: int = 0
    _written_max: int = 0
    _began: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(shown, written) when a read began: by (client, number)."""
    _by_broker: dict[int, int] = field(default_factory=dict)
    _awaited: dict[int, int] = field(default_factory=dict)
    """Epochs of acknowledged writes that were not committed yet, by their last offset."""

    def started(self, node: int) -> None:
        """A broker starts anew: its own reads begin again."""
        self._by_broker.pop(node, None)

    def told(self, broker_id: int, offset: int) -> Iterator[Problem]:
        """A controller tells a broker the lowest acknowledged offset."""
        if offset < 0:
            return
        known = self._told.get(broker_id, 0)
        if offset < known:
            yield (
                "false-lowest-acknowledged-offset",
                f"broker {broker_id} is told {offset} after {known}",
            )
        self._told[broker_id] = max(known, offset)
        for other, broker in self.decided.brokers.items():
            if broker.fenced or self.nodes.incarnation(other) != broker.incarnation_id:
                continue
            applied = self.nodes.applied(other)
            if 0 <= applied < offset:
                yield (
                    "false-lowest-acknowledged-offset",
                    f"broker {broker_id} is told {offset}, broker {other} has applied {applied}",
                )

    def wrote(self, end_offset: int, epoch: int) -> None:
        """A controller acknowledges a client's write."""
        self._written_max = max(self._written_max, end_offset)
        if end_offset > self.decided.offset:
            self._awaited[end_offset - 1] = epoch

    def committed(self, epoch_of: dict[int, int]) -> Iterator[Problem]:
        """Offsets were committed, with their epochs: acknowledged writes must be among them."""
        for offset in [offset for offset in self._awaited if offset in epoch_of]:
            epoch = self._awaited.pop(offset)
            if epoch_of[offset] != epoch:
                yield (
                    "lost-metadata-write",
                    (
                        f"the write at offset {offset} of epoch {epoch} was acknowledged, "
                        f"committed there is one of epoch {epoch_of[offset]}"
                    ),
                )

    @property
    def awaits(self) -> bool:
        """Whether a write was acknowledged before it was committed."""
        return bool(self._awaited)

    def read_began(self, client: int, number: int) -> None:
        """A client asks for metadata."""
        self._began[client, number] = (self._shown_max, self._written_max)

    def read(self, client: int, number: int, broker: int, offset: int) -> Iterator[Problem]:
        """A client has its answer, which shows everything below the offset."""
        shown, written = self._began.pop((client, number), (0, 0))
        self._shown_max = max(self._shown_max, offset)
        session = self._by_broker.get(broker, 0)
        self._by_broker[broker] = max(session, offset)
        if self.decided.level < LEVEL_VISIBILITY:
            return
        if offset < shown:
            yield (
                "nonrepeatable-read",
                f"broker {broker} shows up to {offset}, before it another showed {shown}",
            )
        if offset < written:
            yield (
                "stale-read-after-write",
                f"broker {broker} shows up to {offset}, a write up to {written} was acknowledged",
            )

    def offered(self, broker_id: int, level: int) -> Iterator[Problem]:
        """A broker offers the APIs of this level."""
        for other, broker in self.decided.brokers.items():
            if broker.fenced or self.nodes.incarnation(other) != broker.incarnation_id:
                continue
            applied = self.nodes.level(other)
            if 0 < applied < level:
                yield (
                    "early-renegotiation",
                    f"broker {broker_id} offers level {level}, broker {other} is at {applied}",
                )
                return
