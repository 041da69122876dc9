"""A ZooKeeper in memory, always up to date: a tree, sessions and watches, without time.

`request` carries out a node's request at once. What the node is to be told for it, watches and
answers in ZooKeeper's order, lies in its session's `inbox` until the test delivers it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from clusters.node_port.zookeeper import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    SetData,
    Stat,
    Sync,
    WatchEvent,
    WatchType,
    ZkError,
    ZkOutcome,
    ZkRequest,
    ZkResponse,
)
from clusters.reference.zk.znodes import PERMANENT


@dataclass
class Znode:
    """A znode; `made` counts the sequential names that were given below it."""

    data: bytes
    czxid: int
    mzxid: int
    owner: int = 0
    version: int = 0
    made: int = 0


@dataclass
class Session:
    """A node's session; `inbox` is what it has not been told yet."""

    number: int
    inbox: deque[Any] = field(default_factory=deque)
    data_watches: set[str] = field(default_factory=set)
    child_watches: set[str] = field(default_factory=set)


class RefusedError(Exception):
    """An operation that fails."""

    def __init__(self, error: ZkError) -> None:
        super().__init__(error.name)
        self.error = int(error)


class ZookeeperDouble:
    """The whole ensemble."""

    def __init__(self) -> None:
        self.zxid = 0
        self.tree: dict[str, Znode] = {"/": Znode(b"", 0, 0)}
        self.sessions: dict[int, Session] = {}
        self.numbers = 0
        self.on_write: Callable[[Operation], None] = lambda _: None
        """Called before writes, with the last of them; a test may do another one first."""
        self.loses: Callable[[ZkRequest], bool] = lambda _: False
        """Whether the answer to a request, which is carried out, gets lost."""
        for path in PERMANENT:
            self.write(Create(path, b""))

    # Sessions.

    def open(self) -> Session:
        """A session of its own."""
        self.numbers += 1
        session = self.sessions[self.numbers] = Session(self.numbers)
        return session

    def expire(self, session: Session) -> None:
        """The session is over: its ephemeral znodes go."""
        del self.sessions[session.number]
        for path in [path for path, one in self.tree.items() if one.owner == session.number]:
            self.write(Delete(path))

    # Reading and writing from outside.

    def write(self, *operations: Operation, session: Session | None = None) -> list[ZkOutcome]:
        """Write, also without a session; a failure is an AssertionError."""
        error, outcomes = self._carry_out(operations, session or Session(0))
        assert error == 0, (error, operations)
        return outcomes

    def data(self, path: str) -> bytes:
        """The data of a znode."""
        return self.tree[path].data

    def version(self, path: str) -> int:
        """The version of a znode."""
        return self.tree[path].version

    def children(self, path: str) -> tuple[str, ...]:
        """The names of its children."""
        above = path.rstrip("/") + "/"
        found = (one.removeprefix(above) for one in self.tree if one.startswith(above))
        return tuple(sorted(one for one in found if one and "/" not in one))

    # A node's requests.

    def request(self, session: Session, request: ZkRequest) -> None:
        """Carry out a request of a session's; the answer lies in its inbox."""
        if session.number not in self.sessions:
            return
        error, outcomes = self._carry_out(request.operations, session)
        response = ZkResponse(request.correlation, error, self.zxid, tuple(outcomes))
        if self.loses(request):
            response = ZkResponse(request.correlation, int(ZkError.CONNECTION_LOSS), -1, ())
        session.inbox.append(response)

    def _carry_out(
        self, operations: tuple[Operation, ...], session: Session
    ) -> tuple[int, list[ZkOutcome]]:
        fired: list[tuple[WatchType, str]] = []
        outcomes: list[ZkOutcome] = []
        writes = [one for one in operations if isinstance(one, Create | SetData | Delete)]
        if writes:
            self.on_write(writes[-1])
            self.zxid += 1
        before = {path: replace(one) for path, one in self.tree.items()} if writes else self.tree
        for index, operation in enumerate(operations):
            try:
                outcomes.append(self._one(operation, session, fired))
            except RefusedError as refused:
                self.tree = before
                after = len(operations) - index - 1
                inconsistent = int(ZkError.RUNTIME_INCONSISTENCY)
                return refused.error, [
                    *(ZkOutcome() for _ in range(index)),
                    ZkOutcome(refused.error),
                    *(ZkOutcome(inconsistent) for _ in range(after)),
                ]
        for kind, path in fired:
            self._fire(kind, path)
        return 0, outcomes

    def _one(
        self, operation: Operation, session: Session, fired: list[tuple[WatchType, str]]
    ) -> ZkOutcome:
        match operation:
            case Create():
                return self._create(operation, session, fired)
            case SetData(path=path, version=version):
                node = self._found(path, version)
                node.data, node.version, node.mzxid = operation.data, node.version + 1, self.zxid
                fired.append((WatchType.CHANGED, path))
                return ZkOutcome(stat=self._stat(path))
            case Delete(path=path, version=version):
                self._found(path, version)
                if self.children(path):
                    raise RefusedError(ZkError.NOT_EMPTY)
                del self.tree[path]
                fired += [(WatchType.DELETED, path), (WatchType.CHILDREN, _above(path))]
                return ZkOutcome()
            case Check(path=path, version=version):
                self._found(path, version)
                return ZkOutcome()
            case Sync():
                return ZkOutcome()
            case _:
                return self._read(operation, session)

    def _create(
        self, operation: Create, session: Session, fired: list[tuple[WatchType, str]]
    ) -> ZkOutcome:
        above = self._found(_above(operation.path), -1)
        path = operation.path
        if operation.sequential:
            path = f"{path}{above.made:010d}"
            above.made += 1
        if path in self.tree:
            raise RefusedError(ZkError.NODE_EXISTS)
        owner = session.number if operation.ephemeral else 0
        self.tree[path] = Znode(operation.data, self.zxid, self.zxid, owner)
        fired += [(WatchType.CREATED, path), (WatchType.CHILDREN, _above(path))]
        return ZkOutcome(path=path, stat=self._stat(path))

    def _read(self, operation: Operation, session: Session) -> ZkOutcome:
        assert isinstance(operation, GetData | Exists | GetChildren), operation
        is_there = operation.path in self.tree
        if operation.watch and (is_there or isinstance(operation, Exists)):
            of_children = isinstance(operation, GetChildren)
            (session.child_watches if of_children else session.data_watches).add(operation.path)
        if not is_there:
            raise RefusedError(ZkError.NO_NODE)
        stat = self._stat(operation.path)
        if isinstance(operation, GetChildren):
            return ZkOutcome(children=self.children(operation.path), stat=stat)
        data = self.data(operation.path) if isinstance(operation, GetData) else b""
        return ZkOutcome(data=data, stat=stat)

    def _found(self, path: str, version: int) -> Znode:
        node = self.tree.get(path)
        if node is None:
            raise RefusedError(ZkError.NO_NODE)
        if version not in (-1, node.version):
            raise RefusedError(ZkError.BAD_VERSION)
        return node

    def _stat(self, path: str) -> Stat:
        node = self.tree[path]
        return Stat(node.czxid, node.mzxid, node.version, node.owner, len(self.children(path)))

    def _fire(self, kind: WatchType, path: str) -> None:
        for session in self.sessions.values():
            watches = session.child_watches if kind is WatchType.CHILDREN else session.data_watches
            if path in watches:
                watches.discard(path)
                session.inbox.append(WatchEvent(-1, kind, path))


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"
