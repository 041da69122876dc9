"""The metadata that brokers show: lowest acknowledged offsets, reads, writes and API levels.

What is demanded of reads holds once LEVEL_VISIBILITY is in force, which is when some broker was
told that all have applied it. A write counts as acknowledged from the moment at which the
controller answers it: later reads reach brokers that have applied it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY
from fencepost.clusters.reference.oracle.finding import Nodes
from fencepost.clusters.reference.oracle.metadata_oracle import MetadataOracle, Problem


@dataclass(slots=True)
class VisibilityOracle:
    """The ghost of what was shown and promised."""

    decided: MetadataOracle
    nodes: Nodes
    _told: dict[int, tuple[int, int]] = field(default_factory=dict)
    """(epoch, offset) of the last controller that told each broker one."""
    _epochs: dict[int, int] = field(default_factory=dict)
    """The epoch in which each controller is active, or was."""
    _visible: dict[int, int] = field(default_factory=dict)
    _told_max: int = -1
    _shown_max: int = 0
    _written_max: int = 0
    _began: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(shown, written) when a read began: by (client, number)."""
    _awaited: dict[int, int] = field(default_factory=dict)
    """Epochs of acknowledged writes that were not committed yet, by their last offset."""

    def started(self, node: int) -> None:
        """A broker starts anew: what it shows begins again."""
        self._visible.pop(node, None)

    def is_active(self, controller: int, epoch: int) -> None:
        """A controller begins to decide."""
        self._epochs[controller] = epoch

    def is_visible(self, broker: int, offset: int) -> Iterator[Problem]:
        """A broker shows everything below the offset from now on."""
        before = self._visible.get(broker, 0)
        if offset < before:
            yield "session-went-back", f"broker {broker} shows up to {offset} after {before}"
        self._visible[broker] = offset

    def told(self, controller: int, broker_id: int, offset: int) -> Iterator[Problem]:
        """A controller tells a broker the lowest acknowledged offset.

        One that does not know yet that it was deposed may tell an old one: it is not believed.
        """
        if offset < 0:
            return
        epoch = self._epochs.get(controller, 0)
        known_epoch, known = self._told.get(broker_id, (0, 0))
        if epoch < known_epoch:
            return
        if offset < known:
            yield (
                "false-lowest-acknowledged-offset",
                f"broker {broker_id} is told {offset} after {known}",
            )
        self._told[broker_id] = (epoch, max(known, offset))
        self._told_max = max(self._told_max, offset)
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
        if self._is_in_force():
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
        """True if a write was acknowledged before it was committed."""
        return bool(self._awaited)

    def read_began(self, client: int, number: int) -> None:
        """A client asks for metadata."""
        if self._is_in_force():
            self._began[client, number] = (self._shown_max, self._written_max)

    def read(self, client: int, number: int, broker: int, offset: int) -> Iterator[Problem]:
        """A client has its answer, which shows everything below the offset."""
        offset = self.decided.said(offset)
        if self._is_in_force():
            self._shown_max = max(self._shown_max, offset)
        shown, written = self._began.pop((client, number), (0, 0))
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

    def _is_in_force(self) -> bool:
        decided = self.decided
        return decided.level >= LEVEL_VISIBILITY and self._told_max > decided.level_offset
