"""Entries of the ensemble's log: requests in the order that the leader gave them.

ZooKeeper's leader decides a request against the state that all requests before it lead to, and logs
what is decided. Here the request is logged, and decided by whoever applies it first: the state and
the order are the same for all. A refused write has a zxid of its own, too, as in ZooKeeper.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fencepost.clusters.data_tree.requests import Asked, decided
from fencepost.clusters.data_tree.transactions import Transaction
from fencepost.clusters.data_tree.tree import DataTree

LOG: Final = "transactions"
"""The name of the log on the disk of a server."""
COUNTER_BITS: Final = 32
"""A zxid is an epoch and, in its low bits, a counter there."""


@dataclass(slots=True)
class BeginEpoch:
    """The leader of an epoch begins: no transaction, but what a majority must have first.

    In ZooKeeper it is the NEWLEADER proposal, whose zxid has the counter 0, too.
    """


Change = Asked | BeginEpoch


@dataclass(slots=True)
class LogEntry:
    """An entry. Immutable by agreement, once decided: the logs of all servers share it."""

    base_offset: int
    """Its index in the log."""
    zxid: int
    time_ms: int
    """The leader's clock."""
    session: int
    change: Change
    server: int = 0
    """The server that a client asked; 0: the leader decided on it."""
    connection: int = 0
    """The client's connection there."""
    xid: int = 0
    """The client's number of the request."""
    transaction: Transaction | None = field(default=None, compare=False)
    """The transaction that it was decided to be; None until a server applies it, and of an epoch's
    first entry."""

    @property
    def end_offset(self) -> int:
        """The index after it."""
        return self.base_offset + 1


def decision(tree: DataTree, entry: LogEntry) -> Transaction | None:
    """Return the transaction of an entry behind all before it; None: it begins an epoch."""
    if entry.transaction is None and not isinstance(entry.change, BeginEpoch):
        entry.transaction = decided(
            tree,
            entry.change,
            session=entry.session,
            cxid=entry.xid,
            zxid=entry.zxid,
            time_ms=entry.time_ms,
        )
    return entry.transaction


def transactions(log: Iterable[LogEntry]) -> Iterator[Transaction]:
    """Yield the transactions of a log from its first entry on, in order."""
    tree = DataTree()
    for entry in log:
        transaction = decision(tree, entry)
        if transaction is not None:
            tree.apply(transaction)
            yield transaction
