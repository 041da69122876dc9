"""How a leader decides clients' requests, and what clients are told of what came of them.

A request is decided against the tree that all before it lead to, and becomes a transaction: what
every server does, whatever else it knows. The changes of a multi are decided one after the other,
each against what those before it will have made, and one refusal refuses all.

The order in which a request is checked is that of `PrepRequestProcessor`, the order in which
watches fire that of `DataTree`: those of a znode before those of its parent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from fencepost.clusters.data_tree.transactions import (
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
from fencepost.clusters.data_tree.tree import OPEN, ROOT, DataTree, Znode, parent_of
from fencepost.clusters.node_port.zookeeper import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SetData,
    Stat,
    WatchType,
    Write,
    ZkError,
    ZkOutcome,
)

Asked = tuple[Write, ...] | CreateSessionTxn | CloseSessionTxn
"""One write, a multi of several, or the begin or end of a session."""
Fired = tuple[WatchType, str]
"""The news of a change for those who watch for it."""

_ANY: Final = -1
_OK: Final = int(ZkError.OK)
_EXPIRED: Final = int(ZkError.SESSION_EXPIRED)
_BEHIND: Final = int(ZkError.RUNTIME_INCONSISTENCY)


@dataclass(slots=True)
class Applied:
    """The outcome of a transaction: an outcome for each change, and the watches that it fires."""

    error: int
    """That of the change that was refused; 0: none was."""
    outcomes: tuple[ZkOutcome, ...] = ()
    fired: tuple[Fired, ...] = ()


def decided(
    tree: DataTree, asked: Asked, *, session: int, cxid: int, zxid: int, time_ms: int
) -> Transaction:
    """Return the transaction of a request; the tree stays as it is."""
    changes: tuple[tuple[str, Change], ...]
    if isinstance(asked, CreateSessionTxn):
        changes = (("createSession", asked),)
    elif session not in tree.sessions:
        changes = (("error", ErrorTxn(error=_EXPIRED)),)
    elif isinstance(asked, CloseSessionTxn):
        changes = (("closeSession", CloseSessionTxn(paths=tree.owned_by(session))),)
    else:
        changes = _changes(tree, asked, session)
    return Transaction(
        session=session,
        cxid=cxid,
        zxid=zxid,
        time_ms=time_ms,
        changes=changes,
        digest=0,
        tree_digest=None,
    )


def applied(tree: DataTree, transaction: Transaction) -> Applied:
    """Apply a transaction; return what its client is told, and what watches tell."""
    if transaction.refused:
        tree.apply(transaction)
        codes = [one.error for _, one in transaction.changes if isinstance(one, ErrorTxn)]
        error = next(one for one in codes if one not in (_OK, _BEHIND))
        return Applied(error, () if error == _EXPIRED else tuple(map(ZkOutcome, codes)))
    outcomes: list[ZkOutcome] = []
    fired: list[Fired] = []
    for _, change in transaction.changes:
        tree.carry_out(change, transaction)
        outcomes += _outcomes(tree, change)
        fired += _fired(change)
    tree.zxid = transaction.zxid
    return Applied(_OK, tuple(outcomes), tuple(fired))


def read(tree: DataTree, operation: GetData | Exists | GetChildren) -> ZkOutcome:
    """Return what a read shows now."""
    znode = tree.znodes.get(operation.path)
    if znode is None:
        valid = is_valid(operation.path)
        return ZkOutcome(int(ZkError.NO_NODE if valid else ZkError.BAD_ARGUMENTS))
    if isinstance(operation, GetData):
        return ZkOutcome(data=znode.data or b"", stat=stat_of(znode))
    if isinstance(operation, GetChildren):
        return ZkOutcome(children=tuple(sorted(znode.children)), stat=stat_of(znode))
    return ZkOutcome(stat=stat_of(znode))


def stat_of(znode: Znode) -> Stat:
    """Return what a client is told of a znode."""
    owner, count = znode.ephemeral_owner, len(znode.children)
    return Stat(znode.czxid, znode.mzxid, znode.version, owner, count)


def is_valid(path: str) -> bool:
    """Return whether it can be the path of a znode (`PathUtils.validatePath`)."""
    if path == ROOT:
        return True
    names = path.split("/")
    return (
        names[0] == "" and len(names) > 1 and all(one not in ("", ".", "..") for one in names[1:])
    )


class _Expected:
    """A znode as it will be when all that was decided so far is applied (`ChangeRecord`)."""

    __slots__ = ("children_count", "created_count", "is_ephemeral", "version")

    def __init__(
        self, version: int, created_count: int, children_count: int, *, is_ephemeral: bool
    ) -> None:
        self.version = version
        self.created_count = created_count
        self.children_count = children_count
        self.is_ephemeral = is_ephemeral


class _Decisions:
    """The changes of one request, each decided behind those before it."""

    def __init__(self, tree: DataTree, session: int) -> None:
        self._tree = tree
        self._session = session
        self._expected: dict[str, _Expected | None] = {}
        """The znodes that were looked at; None: there will be none."""

    def change(self, write: Write) -> tuple[str, Change] | ZkError:
        """Return the next change, behind its type, or the error by which it is refused."""
        if isinstance(write, Create):
            return self._create(write)
        if isinstance(write, Delete):
            return self._delete(write)
        error = self._refused(write.path, write.version)
        if error:
            return error
        if isinstance(write, Check):
            return "check", CheckVersionTxn(path=write.path, version=write.version)
        if isinstance(write, SetData):
            znode = self._znode(write.path)
            assert znode is not None
            znode.version += 1
            return "setData", SetDataTxn(path=write.path, data=write.data, version=znode.version)
        assert_never(write)

    def _create(self, create: Create) -> tuple[str, Change] | ZkError:
        if ROOT not in create.path:
            return ZkError.BAD_ARGUMENTS
        parent = self._znode(parent_of(create.path))
        if parent is None:
            return ZkError.NO_NODE
        path = f"{create.path}{parent.created_count:010d}" if create.sequential else create.path
        if not is_valid(path):
            return ZkError.BAD_ARGUMENTS
        if self._znode(path) is not None:
            return ZkError.NODE_EXISTS
        if parent.is_ephemeral:
            return ZkError.NO_CHILDREN_FOR_EPHEMERALS
        parent.created_count += 1
        parent.children_count += 1
        self._expected[path] = _Expected(0, 0, 0, is_ephemeral=create.ephemeral)
        return "create", CreateTxn(
            path=path,
            data=create.data,
            acls=OPEN,
            ephemeral_owner=self._session if create.ephemeral else 0,
            parent_cversion=parent.created_count,
        )

    def _delete(self, delete: Delete) -> tuple[str, Change] | ZkError:
        if delete.path == ROOT or ROOT not in delete.path:
            return ZkError.BAD_ARGUMENTS
        znode = self._znode(delete.path)
        if znode is None:
            return ZkError.NO_NODE  # of its name no more is asked
        error = self._refused(delete.path, delete.version)
        if error:
            return error
        if znode.children_count:
            return ZkError.NOT_EMPTY
        self._expected[delete.path] = None
        parent = self._znode(parent_of(delete.path))
        assert parent is not None
        parent.children_count -= 1
        return "delete", DeleteTxn(path=delete.path)

    def _refused(self, path: str, version: int) -> ZkError | None:
        """Return the error of a request for this version of a znode, None if it is granted."""
        znode = self._znode(path)
        if znode is None:
            return ZkError.NO_NODE if is_valid(path) else ZkError.BAD_ARGUMENTS
        return None if version in (_ANY, znode.version) else ZkError.BAD_VERSION

    def _znode(self, path: str) -> _Expected | None:
        if path in self._expected:
            return self._expected[path]
        znode = self._tree.znodes.get(path)
        found = None
        if znode is not None:
            is_ephemeral = znode.session is not None
            count = len(znode.children)
            found = _Expected(znode.version, znode.cversion, count, is_ephemeral=is_ephemeral)
        self._expected[path] = found
        return found


def _changes(
    tree: DataTree, writes: tuple[Write, ...], session: int
) -> tuple[tuple[str, Change], ...]:
    decisions = _Decisions(tree, session)
    changes: list[tuple[str, Change]] = []
    for at, write in enumerate(writes):
        change = decisions.change(write)
        if isinstance(change, ZkError):
            codes = (_OK,) * at + (int(change),) + (_BEHIND,) * (len(writes) - at - 1)
            return tuple(("error", ErrorTxn(error=one)) for one in codes)
        changes.append(change)
    return tuple(changes)


def _outcomes(tree: DataTree, change: Change) -> Iterator[ZkOutcome]:
    """Yield what the client is told of a change that was just made; a session asks for none."""
    match change:
        case CreateTxn():
            yield ZkOutcome(path=change.path, stat=stat_of(tree.znodes[change.path]))
        case SetDataTxn() | SetAclTxn():
            yield ZkOutcome(stat=stat_of(tree.znodes[change.path]))
        case DeleteTxn() | CheckVersionTxn():
            yield ZkOutcome()
        case CreateSessionTxn() | CloseSessionTxn() | ErrorTxn():
            pass
        case _:
            assert_never(change)


def _fired(change: Change) -> Iterator[Fired]:
    match change:
        case CreateTxn():
            yield WatchType.CREATED, change.path
            yield WatchType.CHILDREN, parent_of(change.path)
        case SetDataTxn():
            yield WatchType.CHANGED, change.path
        case DeleteTxn():
            yield from _gone(change.path)
        case CloseSessionTxn():
            for path in change.paths or ():
                yield from _gone(path)
        case CreateSessionTxn() | CheckVersionTxn() | SetAclTxn() | ErrorTxn():
            pass
        case _:
            assert_never(change)


def _gone(path: str) -> Iterator[Fired]:
    yield WatchType.DELETED, path
    yield WatchType.CHILDREN, parent_of(path)
