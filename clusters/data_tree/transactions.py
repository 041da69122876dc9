"""Transactions as values: what a leader decided, as its log and every server's log has it.

Source: `org.apache.zookeeper.txn` of ZooKeeper 3.9.
"""

from dataclasses import dataclass
from typing import Final

CONTAINER_OWNER: Final = -(1 << 63)
"""The owner that stands for "a container" (`EphemeralType`)."""
TTL_OWNER: Final = -(1 << 56)
"""The owner that stands, with a time to live in its low bits, for "no longer than that"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """A permission: its bits, and who has it."""

    permissions: int
    scheme: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTxn:
    """A znode is made."""

    path: str
    data: bytes | None
    acls: tuple[Acl, ...]
    ephemeral_owner: int
    """Its session, 0 for none, or the mark of a container or of a time to live."""
    parent_cversion: int
    """The children that were ever made under its parent, this one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTxn:
    """A znode is removed."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDataTxn:
    """A znode's data are replaced."""

    path: str
    data: bytes | None
    version: int
    """The version that this makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAclTxn:
    """A znode's permissions are replaced."""

    path: str
    acls: tuple[Acl, ...]
    version: int
    """The version of its permissions that this makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckVersionTxn:
    """A version, which a multi asked for, is as it expected."""

    path: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSessionTxn:
    """The session of the transaction begins."""

    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSessionTxn:
    """The session of the transaction ends, and its ephemeral znodes with it."""

    paths: tuple[str, ...] | None
    """Those znodes; None: releases before 3.6 do not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTxn:
    """Nothing happens."""

    error: int
    """ZooKeeper's code. Of a multi, the others of a change that was refused have 0 or -2."""


Change = (
    CreateTxn
    | DeleteTxn
    | SetDataTxn
    | SetAclTxn
    | CheckVersionTxn
    | CreateSessionTxn
    | CloseSessionTxn
    | ErrorTxn
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """An entry of a log."""

    session: int
    cxid: int
    """Its number in the session."""
    zxid: int
    time_ms: int
    """The leader's wall clock, ms since 1970."""
    changes: tuple[tuple[str, Change], ...]
    """The changes, each behind its type ("create2", "setData"); a multi has several."""
    digest: int
    """Of header and body: equal transactions have equal digests. Of a multi that was refused the
    header alone counts: a server that applies it before it logs it logs its other parts as errors,
    too (`DataTree.processTxn` sets their types)."""
    tree_digest: int | None
    """The digest that the leader's tree had afterwards; None: not stated."""

    @property
    def refused(self) -> bool:
        """True if nothing of it happened: a refusal undoes a whole multi."""
        return any(isinstance(change, ErrorTxn) for _, change in self.changes)
