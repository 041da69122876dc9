"""The leader's knowledge of one follower, from its fetches alone."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fencepost.clusters.reference.nodes.replicas.waiting import FollowerFetch

_LONG_AGO: Final = -(1 << 62)


class Remote:
    """A follower of one partition, under one leader epoch."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ns",
        "end_at_fetch",
        "fetched_ns",
        "is_member",
        "offset",
        "parked",
        "sent_mark",
    )

    def __init__(self, broker_id: int, parked: "FollowerFetch") -> None:
        self.broker_id = broker_id
        self.offset = -1
        """The end of what it has; -1 before its first fetch."""
        self.broker_epoch = -1
        """The broker epoch of its last fetch (KIP-903); -1: none, or below version 15."""
        self.caught_up_ns = _LONG_AGO
        """The time when it last had all that the leader had."""
        self.end_at_fetch = -1
        """The leader's log end offset at its last fetch."""
        self.fetched_ns = _LONG_AGO
        self.is_member = False
        """True if it is a member of the maximal ISR."""
        self.sent_mark = -1
        """The high watermark that it was told last."""
        self.parked = parked
        """The place where its fetch waits, of this partition and others."""

    def fetch(self, now: int, offset: int, broker_epoch: int, end: int) -> None:
        """It asks for `offset` on; `end` is the leader's log end offset.

        A follower that asks for the end as of its fetch before was caught up then.
        """
        if offset >= end:
            self.caught_up_ns = now
        elif offset >= self.end_at_fetch:
            if self.fetched_ns > self.caught_up_ns:  # noqa: PLR1730 - hot
                self.caught_up_ns = self.fetched_ns
        elif offset < self.offset and not self.is_member:
            # It has lost records: its earlier merits are no reason to wait for it.
            self.caught_up_ns = _LONG_AGO
        self.end_at_fetch = end
        self.fetched_ns = now
        self.broker_epoch = broker_epoch
        self.offset = offset
