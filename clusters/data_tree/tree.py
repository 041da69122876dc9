"""The tree of a server: what transactions make of znodes and sessions (`server.DataTree`).

It is the only one: logs on disks are replayed with it, simulated servers and tests' doubles apply
to it what `requests` has decided.

A snapshot is written while transactions go on, so it may have some of what came after the zxid in
its name. Transactions are therefore applied to what may have them already: one that finds nothing
to do does nothing, and a parent's counters only grow.
"""

from dataclasses import dataclass, field
from typing import Final, assert_never

from fencepost.clusters.data_tree.transactions import (
    CONTAINER_OWNER,
    TTL_OWNER,
    Acl,
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
    SetDataTxn,
    Transaction,
)

ROOT: Final = "/"
OPEN: Final = (Acl(permissions=31, scheme="world", id="anyone"),)
"""The permissions by which anyone may do anything."""


@dataclass(slots=True, kw_only=True)
class Znode:
    """A znode, with the counters of its Stat as they are stored."""

    data: bytes | None = None
    acls: tuple[Acl, ...] = OPEN
    czxid: int = 0
    mzxid: int = 0
    ctime_ms: int = 0
    mtime_ms: int = 0
    version: int = 0
    cversion: int = 0
    """The children that were ever made; clients are told of those that were deleted, too."""
    aversion: int = 0
    ephemeral_owner: int = 0
    pzxid: int = 0
    """The zxid of the last change of its children."""
    children: dict[str, None] = field(default_factory=dict, compare=False)
    """Their names; the tree keeps them."""

    @property
    def session(self) -> int | None:
        """The session that an ephemeral znode ends with; None: it is not ephemeral."""
        owner = self.ephemeral_owner
        marked = owner == CONTAINER_OWNER or owner >> 56 == TTL_OWNER >> 56
        return None if owner == 0 or marked else owner


def _new_tree() -> dict[str, Znode]:
    """Return the znodes of a server that was never told anything."""
    own = ("/zookeeper", "/zookeeper/quota", "/zookeeper/config")
    return {path: Znode() for path in (ROOT, *own)}


@dataclass(slots=True, kw_only=True)
class DataTree:
    """The znodes by path, and the open sessions, as of a zxid."""

    znodes: dict[str, Znode] = field(default_factory=_new_tree)
    sessions: dict[int, int] = field(default_factory=dict)
    """The timeout of each open session, in ms."""
    zxid: int = 0
    _owned: dict[int, dict[str, None]] = field(init=False, compare=False)
    """The ephemeral znodes of each session, and those of no session by their mark."""

    def __post_init__(self) -> None:
        """Find what each session owns, and the children of each znode."""
        self._owned = {}
        for path, znode in self.znodes.items():
            self._own(path, znode.ephemeral_owner)
            if path != ROOT and (parent := self.znodes.get(parent_of(path))):
                parent.children[name_of(path)] = None

    def owned_by(self, session: int) -> tuple[str, ...]:
        """Return the paths of the ephemeral znodes of a session, in order."""
        return tuple(sorted(self._owned.get(session, ())))

    def apply(self, transaction: Transaction) -> None:
        """Carry out a transaction, of a zxid after all before."""
        if not transaction.refused:
            for _, change in transaction.changes:
                self.carry_out(change, transaction)
        self.zxid = transaction.zxid

    def carry_out(self, change: Change, by: Transaction) -> None:
        """Make one of the changes of a transaction."""
        match change:
            case CreateTxn():
                self._create(change, by)
            case DeleteTxn():
                self._delete(change.path, by.zxid)
            case SetDataTxn():
                if znode := self.znodes.get(change.path):
                    znode.data, znode.version = change.data, change.version
                    znode.mzxid, znode.mtime_ms = by.zxid, by.time_ms
            case SetAclTxn():
                if znode := self.znodes.get(change.path):
                    znode.acls, znode.aversion = change.acls, change.version
            case CreateSessionTxn():
                self.sessions[by.session] = change.timeout_ms
            case CloseSessionTxn():
                self.sessions.pop(by.session, None)
                for path in dict.fromkeys((*(change.paths or ()), *self.owned_by(by.session))):
                    self._delete(path, by.zxid)
                self._owned.pop(by.session, None)
            case CheckVersionTxn() | ErrorTxn():
                pass
            case _:
                assert_never(change)

    def _create(self, change: CreateTxn, by: Transaction) -> None:
        parent = self.znodes.get(parent_of(change.path))
        if parent is None:
            return
        if change.parent_cversion > parent.cversion:
            parent.cversion, parent.pzxid = change.parent_cversion, by.zxid
        if change.path in self.znodes:
            return
        self.znodes[change.path] = Znode(
            data=change.data,
            acls=change.acls,
            czxid=by.zxid,
            mzxid=by.zxid,
            pzxid=by.zxid,
            ctime_ms=by.time_ms,
            mtime_ms=by.time_ms,
            ephemeral_owner=change.ephemeral_owner,
        )
        parent.children[name_of(change.path)] = None
        self._own(change.path, change.ephemeral_owner)

    def _delete(self, path: str, zxid: int) -> None:
        znode = self.znodes.pop(path, None)
        if znode is None:
            return
        if znode.ephemeral_owner:
            self._owned[znode.ephemeral_owner].pop(path, None)
        if parent := self.znodes.get(parent_of(path)):
            parent.children.pop(name_of(path), None)
            parent.pzxid = max(parent.pzxid, zxid)

    def _own(self, path: str, owner: int) -> None:
        if owner:
            self._owned.setdefault(owner, {})[path] = None


def parent_of(path: str) -> str:
    """Return the path of a znode's parent."""
    return path.rpartition("/")[0] or ROOT


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]
