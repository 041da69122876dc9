"""A ZooKeeper in memory, always up to date: the data tree and the simulator's watches, no time.

`request` carries out a node's request at once. What the node is to be told for it, watches and
answers in ZooKeeper's order, lies in its session's `inbox` until the test delivers it.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.clusters.data_tree.requests import Applied, Asked, applied, decided
from fencepost.clusters.data_tree.transactions import CloseSessionTxn, CreateSessionTxn
from fencepost.clusters.data_tree.tree import DataTree, Znode
from fencepost.clusters.node_port.zookeeper import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    SetData,
    Sync,
    WatchEvent,
    ZkError,
    ZkOutcome,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.reference.zk.znodes import PERMANENT
from fencepost.clusters.simulation.zookeeper.watches import Watches

_OUTSIDE = 0
"""The session of what is written from outside."""


@dataclass
class Session:
    """A node's session; `inbox` is what it has not been told yet."""

    number: int
    inbox: deque[Any] = field(default_factory=deque)


class ZookeeperDouble:
    """The whole ensemble."""

    def __init__(self) -> None:
        self._tree, self._watches = DataTree(), Watches()
        self.sessions: dict[int, Session] = {}
        self.numbers = 0
        self.on_write: Callable[[Operation], None] = lambda _: None
        """Called before writes, with the last of them; a test may do another one first."""
        self.loses: Callable[[ZkRequest], bool] = lambda _: False
        """Whether the answer to a request, which is carried out, gets lost."""
        self._carry_out(CreateSessionTxn(timeout_ms=0), _OUTSIDE, zxid=0)
        for path in PERMANENT:
            self.write(Create(path, b""))

    # Sessions.

    def open(self) -> Session:
        """A session of its own."""
        self.numbers += 1
        session = self.sessions[self.numbers] = Session(self.numbers)
        self._carry_out(CreateSessionTxn(timeout_ms=0), session.number, zxid=self.zxid)
        return session

    def expire(self, session: Session) -> None:
        """The session is over: its ephemeral znodes go."""
        del self.sessions[session.number]
        self._apply(CloseSessionTxn(paths=None), session.number)

    def forget(self, session: Session) -> None:
        """Tell the session of nothing that it watches by now."""
        self._watches.forget(session.number)

    # Reading and writing from outside.

    def write(
        self, *operations: Operation, session: Session | None = None
    ) -> tuple[ZkOutcome, ...]:
        """Write, also without a session; a failure is an AssertionError."""
        done = self._write(operations, _OUTSIDE if session is None else session.number)
        assert done.error == 0, (done.error, operations)
        return done.outcomes

    @property
    def zxid(self) -> int:
        return self._tree.zxid

    @property
    def tree(self) -> Mapping[str, Znode]:
        """The znodes by path."""
        return self._tree.znodes

    def data(self, path: str) -> bytes:
        """The data of a znode."""
        return self.tree[path].data or b""

    def version(self, path: str) -> int:
        """The version of a znode."""
        return self.tree[path].version

    def children(self, path: str) -> tuple[str, ...]:
        """The names of its children; none if it is not there."""
        return tuple(sorted(self.tree[path].children)) if path in self.tree else ()

    # A node's requests.

    def request(self, session: Session, request: ZkRequest) -> None:
        """Carry out a request of a session's; the answer lies in its inbox."""
        if session.number not in self.sessions:
            return
        if isinstance(request.operations[0], Create | SetData | Delete | Check):
            done = self._write(request.operations, session.number)
        else:
            (operation,) = request.operations
            done = self._read(operation, session.number)
        response = ZkResponse(request.correlation, done.error, self.zxid, done.outcomes)
        if self.loses(request):
            response = ZkResponse(request.correlation, int(ZkError.CONNECTION_LOSS), -1, ())
        session.inbox.append(response)

    def _write(self, operations: tuple[Operation, ...], session: int) -> Applied:
        writes = tuple(
            one for one in operations if isinstance(one, Create | SetData | Delete | Check)
        )
        assert writes == operations, operations
        self.on_write([one for one in writes if not isinstance(one, Check)][-1])
        return self._apply(writes, session)

    def _apply(self, asked: Asked, session: int) -> Applied:
        """Carry out a transaction, and have those told who watch."""
        done = self._carry_out(asked, session, zxid=self.zxid + 1)
        for kind, path in done.fired:
            for number in self._watches.fire((kind, path)):
                if number in self.sessions:
                    self.sessions[number].inbox.append(WatchEvent(-1, kind, path))
        return done

    def _carry_out(self, asked: Asked, session: int, *, zxid: int) -> Applied:
        transaction = decided(self._tree, asked, session=session, cxid=0, zxid=zxid, time_ms=0)
        return applied(self._tree, transaction)

    def _read(self, operation: Operation, session: int) -> Applied:
        if isinstance(operation, Sync):
            return Applied(0, (ZkOutcome(),))
        assert isinstance(operation, GetData | Exists | GetChildren), operation
        outcome = self._watches.read(operation, session, self._tree)
        return Applied(outcome.error, (outcome,))
