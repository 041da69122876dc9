"""The data tree and its watches: a state machine of entries, with ZooKeeper's outcomes and errors.

The order in which a request is checked is that of `PrepRequestProcessor`, the order in which
watches fire that of `DataTree`: of the znode before those of its parent.
"""

from dataclasses import dataclass
from typing import Final, assert_never

from clusters.node_port.zookeeper import (
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
from clusters.simulation.zookeeper.entries import BeginEpoch, EndSession, LogEntry, StartSession
from clusters.simulation.zookeeper.frames import SetWatches

ROOT: Final = "/"
_ANY: Final = -1
Fired = tuple[WatchType, str]
"""The news of a change for those who watch for it."""

_OK: Final = int(ZkError.OK)
_EXPIRED: Final = int(ZkError.SESSION_EXPIRED)
_BEHIND: Final = int(ZkError.RUNTIME_INCONSISTENCY)
_ByPath = dict[str, dict[int, None]]


class Znode:
    """A znode: its data, and what ZooKeeper keeps of it. Mutable: the tree changes it in place."""

    __slots__ = ("children", "created_count", "czxid", "data", "mzxid", "owner", "pzxid", "version")

    def __init__(self, data: bytes, zxid: int, owner: int) -> None:
        self.data = data
        self.czxid = zxid
        self.mzxid = zxid
        self.pzxid = zxid
        """The zxid of the last change of its children."""
        self.version = 0
        self.owner = owner
        self.children: dict[str, None] = {}
        """Their names."""
        self.created_count = 0
        """The children that were ever made: the number of the next sequential one."""

    def copy(self) -> "Znode":
        """Return one of the same state."""
        other = Znode(self.data, self.czxid, self.owner)
        other.mzxid, other.pzxid, other.version = self.mzxid, self.pzxid, self.version
        other.children, other.created_count = dict(self.children), self.created_count
        return other

    def stat(self) -> Stat:
        """Return what a client is told of it."""
        return Stat(self.czxid, self.mzxid, self.version, self.owner, len(self.children))


@dataclass(slots=True)
class Applied:
    """The outcome of an entry."""

    error: int
    outcomes: tuple[ZkOutcome, ...] = ()
    fired: tuple[Fired, ...] = ()
    ended: tuple[str, ...] = ()
    """The ephemeral znodes that went with their session."""


class Tree:
    """The state of a server: znodes by path, and sessions with their time-outs in ms."""

    __slots__ = ("_before", "_ephemerals", "_fired", "sessions", "znodes", "zxid")

    def __init__(self) -> None:
        self.zxid = 0
        """The last transaction that was applied."""
        self.znodes: dict[str, Znode] = {ROOT: Znode(b"", 0, 0)}
        self.sessions: dict[int, int] = {}
        self._ephemerals: dict[int, dict[str, None]] = {}
        """The paths of the ephemeral znodes of each session."""
        self._fired: list[Fired] = []
        self._before: dict[str, Znode | None] | None = None
        """While a multi is under way, the znodes that it has touched, as they were."""

    def apply(self, entry: LogEntry) -> Applied:
        """Apply the next entry."""
        change, session = entry.change, entry.session
        self.zxid = entry.zxid
        if isinstance(change, BeginEpoch):
            return Applied(_OK)
        if isinstance(change, StartSession):
            self.sessions[session] = change.timeout_ms
            return Applied(_OK)
        if session not in self.sessions:
            return Applied(_EXPIRED)
        if isinstance(change, EndSession):
            return self._end(session, entry.zxid)
        if len(change) == 1:
            outcome = self._write(change[0], entry.zxid, session)
            return Applied(outcome.error, (outcome,), self._take_fired())
        return self._multi(change, entry.zxid, session)

    def read(self, operation: GetData | Exists | GetChildren) -> ZkOutcome:
        """Return what a read shows now."""
        znode = self.znodes.get(operation.path)
        if znode is None:
            valid = is_valid(operation.path)
            return ZkOutcome(int(ZkError.NO_NODE if valid else ZkError.BAD_ARGUMENTS))
        if isinstance(operation, GetData):
            return ZkOutcome(data=znode.data, stat=znode.stat())
        if isinstance(operation, GetChildren):
            return ZkOutcome(children=tuple(sorted(znode.children)), stat=znode.stat())
        return ZkOutcome(stat=znode.stat())

    def _multi(self, writes: tuple[Write, ...], zxid: int, session: int) -> Applied:
        self._before = {}
        outcomes: list[ZkOutcome] = []
        for write in writes:
            outcomes.append(self._write(write, zxid, session))
            if outcomes[-1].error:
                break
        before, self._before = self._before, None
        fired = self._take_fired()
        error = outcomes[-1].error
        if not error:
            return Applied(_OK, tuple(outcomes), fired)
        self._undo(before)
        failed = len(outcomes) - 1
        codes = (_OK,) * failed + (error,) + (_BEHIND,) * (len(writes) - failed - 1)
        return Applied(error, tuple(map(ZkOutcome, codes)))

    def _write(self, write: Write, zxid: int, session: int) -> ZkOutcome:
        if isinstance(write, SetData):
            return self._set(write, zxid)
        if isinstance(write, Check):
            return ZkOutcome(self._refused(write.path, write.version))
        if isinstance(write, Create):
            return self._create(write, zxid, session)
        if isinstance(write, Delete):
            error = self._deletable(write)
            if not error:
                self._remove(write.path, zxid)
            return ZkOutcome(error)
        assert_never(write)

    def _create(self, create: Create, zxid: int, session: int) -> ZkOutcome:
        if ROOT not in create.path:
            return ZkOutcome(int(ZkError.BAD_ARGUMENTS))
        above = parent_of(create.path)
        parent = self.znodes.get(above)
        if parent is None:
            return ZkOutcome(int(ZkError.NO_NODE))
        path = f"{create.path}{parent.created_count:010d}" if create.sequential else create.path
        if not is_valid(path):
            return ZkOutcome(int(ZkError.BAD_ARGUMENTS))
        if path in self.znodes:
            return ZkOutcome(int(ZkError.NODE_EXISTS))
        if parent.owner:
            return ZkOutcome(int(ZkError.NO_CHILDREN_FOR_EPHEMERALS))
        self._touch(path)
        self._touch(above)
        znode = self.znodes[path] = Znode(create.data, zxid, session if create.ephemeral else 0)
        if create.ephemeral:
            self._ephemerals.setdefault(session, {})[path] = None
        parent.children[_name_of(path)] = None
        parent.created_count += 1
        parent.pzxid = zxid
        self._fired += ((WatchType.CREATED, path), (WatchType.CHILDREN, above))
        return ZkOutcome(path=path, stat=znode.stat())

    def _set(self, write: SetData, zxid: int) -> ZkOutcome:
        error = self._refused(write.path, write.version)
        if error:
            return ZkOutcome(error)
        self._touch(write.path)
        znode = self.znodes[write.path]
        znode.data = write.data
        znode.mzxid = zxid
        znode.version += 1
        self._fired.append((WatchType.CHANGED, write.path))
        return ZkOutcome(stat=znode.stat())

    def _refused(self, path: str, version: int) -> int:
        """Return the error of a request for this version of a znode, 0 if it is granted."""
        znode = self.znodes.get(path)
        if znode is None:
            return int(ZkError.NO_NODE if is_valid(path) else ZkError.BAD_ARGUMENTS)
        return _OK if version in (_ANY, znode.version) else int(ZkError.BAD_VERSION)

    def _deletable(self, delete: Delete) -> int:
        if delete.path == ROOT or ROOT not in delete.path:
            return int(ZkError.BAD_ARGUMENTS)
        znode = self.znodes.get(delete.path)
        if znode is None:
            return int(ZkError.NO_NODE)  # of its name no more is asked
        error = self._refused(delete.path, delete.version)
        return int(ZkError.NOT_EMPTY) if znode.children and not error else error

    def _remove(self, path: str, zxid: int) -> None:
        above = parent_of(path)
        self._touch(path)
        self._touch(above)
        owner = self.znodes.pop(path).owner
        if owner:
            del self._ephemerals[owner][path]
        parent = self.znodes[above]
        del parent.children[_name_of(path)]
        parent.pzxid = zxid
        self._fired += ((WatchType.DELETED, path), (WatchType.CHILDREN, above))

    def _end(self, session: int, zxid: int) -> Applied:
        del self.sessions[session]
        paths = tuple(sorted(self._ephemerals.get(session, ())))
        for path in paths:
            self._remove(path, zxid)
        self._ephemerals.pop(session, None)
        return Applied(_OK, (), self._take_fired(), paths)

    def _take_fired(self) -> tuple[Fired, ...]:
        fired = tuple(self._fired)
        self._fired.clear()
        return fired

    def _touch(self, path: str) -> None:
        """Remember a znode as it is before a multi first changes it."""
        if self._before is not None and path not in self._before:
            znode = self.znodes.get(path)
            self._before[path] = None if znode is None else znode.copy()

    def _undo(self, before: dict[str, Znode | None]) -> None:
        for path, znode in before.items():
            made = self.znodes.pop(path, None)
            if made is not None and made.owner:
                self._ephemerals[made.owner].pop(path, None)
            if znode is not None:
                self.znodes[path] = znode
                if znode.owner:
                    self._ephemerals[znode.owner][path] = None


def parent_of(path: str) -> str:
    """Return the path of a znode's parent."""
    return path.rpartition("/")[0] or ROOT


def is_valid(path: str) -> bool:
    """Return whether it can be the path of a znode (`PathUtils.validatePath`)."""
    if path == ROOT:
        return True
    names = path.split("/")
    return (
        names[0] == "" and len(names) > 1 and all(one not in ("", ".", "..") for one in names[1:])
    )


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


class Watches:
    """Connections by the path that they watch: its data or existence, or its children."""

    __slots__ = ("_children", "_data")

    def __init__(self) -> None:
        self._data: _ByPath = {}
        self._children: _ByPath = {}

    def watch_data(self, path: str, connection: int) -> None:
        """Tell once when the znode is made, changed or removed."""
        self._data.setdefault(path, {})[connection] = None

    def watch_children(self, path: str, connection: int) -> None:
        """Tell once when a child is made or removed, or the znode is."""
        self._children.setdefault(path, {})[connection] = None

    def fire(self, fired: Fired) -> tuple[int, ...]:
        """Return the connections to be told, which do not watch for it any more."""
        what, path = fired
        if what is WatchType.CHILDREN:
            return tuple(self._children.pop(path, ()))
        found = self._data.pop(path, {})
        if what is WatchType.DELETED:
            found |= self._children.pop(path, {})
        return tuple(found)

    def set_again(self, asked: SetWatches, connection: int, tree: Tree) -> list[Fired]:
        """Set a client's watches; return what they have missed (`DataTree.setWatches`)."""
        missed: list[Fired] = []
        for path in asked.data:
            znode = tree.znodes.get(path)
            if znode is None:
                missed.append((WatchType.DELETED, path))
            elif znode.mzxid > asked.zxid:
                missed.append((WatchType.CHANGED, path))
            else:
                self.watch_data(path, connection)
        for path in asked.exists:
            if path in tree.znodes:
                missed.append((WatchType.CREATED, path))
            else:
                self.watch_data(path, connection)
        for path in asked.children:
            znode = tree.znodes.get(path)
            if znode is None:
                missed.append((WatchType.DELETED, path))
            elif znode.pzxid > asked.zxid:
                missed.append((WatchType.CHILDREN, path))
            else:
                self.watch_children(path, connection)
        return missed

    def forget(self, connection: int) -> None:
        """A connection is over."""
        for by_path in (self._data, self._children):
            for path in [path for path, found in by_path.items() if connection in found]:
                del by_path[path][connection]
                if not by_path[path]:
                    del by_path[path]
