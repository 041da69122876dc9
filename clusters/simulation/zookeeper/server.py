"""A server of the ensemble: a node with a tree, a part in the quorum, and its clients.

A client's requests are answered in their order. Reads are answered from the tree of this server,
which may be behind the leader's; what changes something, and a sync, goes to the leader. When a
change is applied here, the watches that it fires are pushed first, and its answer follows.

A server that neither follows a leader nor leads closes all connections and takes none.
"""

from collections.abc import Iterable
from typing import Any, Final

from fencepost.clusters.data_tree.requests import Applied, Fired, applied
from fencepost.clusters.data_tree.transactions import CloseSessionTxn, CreateSessionTxn
from fencepost.clusters.data_tree.tree import DataTree
from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import (
    CLOSE,
    EXIT,
    NOTE,
    SEND,
    START,
    STOP,
    SYNCED,
    TICK,
    Effects,
)
from fencepost.clusters.node_port.notes import ZNODES_CHANGED
from fencepost.clusters.node_port.storage import Contents
from fencepost.clusters.node_port.zookeeper import (
    ZOOKEEPER,
    Check,
    CloseSession,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SetData,
    Sync,
    WatchType,
    ZkOutcome,
    ZkResponse,
)
from fencepost.clusters.simulation.zookeeper.connection import (
    Connection,
    PendingRequest,
    SessionTracker,
)
from fencepost.clusters.simulation.zookeeper.entries import LogEntry, decision
from fencepost.clusters.simulation.zookeeper.frames import (
    Body,
    Call,
    Commit,
    Connect,
    Forward,
    Forwarded,
    Granted,
    Ping,
    SetWatches,
)
from fencepost.clusters.simulation.zookeeper.member import Member
from fencepost.clusters.simulation.zookeeper.quorum import EnsembleConsensus, Epoch, Mode
from fencepost.clusters.simulation.zookeeper.streams import Stream
from fencepost.clusters.simulation.zookeeper.timing import Timing
from fencepost.clusters.simulation.zookeeper.watches import Watches

_CHILDREN: Final = WatchType.CHILDREN
_END: Final = CloseSessionTxn(paths=None)
"""As a request: which znodes go with the session is decided later."""
_SYNC: Final = ()
"""A sync as a change: nothing."""


class ZooKeeperServer:
    """`node_port.effects.Node`. `quorum`: that of the ensemble's servers."""

    def __init__(self, number: int, quorum: EnsembleConsensus, timing: Timing) -> None:
        self.alarm = Alarm()
        self.tree = DataTree()
        self.member = Member(number, quorum, timing=timing, alarm=self.alarm, server=self)
        self._number = number
        self._timing = timing
        self._sessions = SessionTracker()
        self._watches = Watches()
        self._connections: dict[int, Connection] = {}
        self._stream = 0
        """A follower's: the number of the stream of its forwards."""
        self._forwarded_count = 0
        self._streams: dict[int, Stream[Forwarded]] = {}
        """A leader's: the forwards of its followers, by the number of their stream."""
        self._waiting: list[Granted] = []
        """Syncs and new connections that wait until so much of the log is applied."""
        self._touched: dict[int, None] = {}
        """A follower's: the sessions that were heard of since it told its leader last."""
        self._id = 0
        """The last number that it gave, of a session or a stream of forwards."""

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event."""
        if kind in (Call.kind, Ping.kind):
            self._heard(now, message, effects)
        elif kind == SYNCED:
            self.member.synced(now, message, effects)
        elif kind == Commit.kind:
            self.member.told(now, message, effects)
        elif kind == Forward.kind:
            self._forwarded(now, message, effects)
        elif kind == Granted.kind:
            self._granted(message)
        elif kind == TICK:
            self._tick(now, effects)
        elif kind == Connect.kind:
            self._connect(now, source, message, effects)
        elif kind == START:
            self._start(now, message)
        elif kind == STOP:
            effects.append((EXIT, ""))
        self._release(effects)

    def _start(self, now: int, contents: Contents) -> None:
        # ZooKeeper's way: the server's number is the highest byte, so that no two give the same id.
        self._id = self._number - ZOOKEEPER << 56 | (contents.incarnation_id & 0xFFFF_FFFF) << 16
        self.member.start(now, contents.incarnation_id)

    def _tick(self, now: int, effects: Effects) -> None:
        self.alarm.reset()
        self.member.tick(now, effects)
        if self._leads():
            for session in self._sessions.expire(now):
                self.member.propose(now, session, _END, effects)
            self.alarm.by(self._sessions.due_ns)

    def _leads(self) -> bool:
        return self.member.is_serving and self.member.mode is Mode.LEADING

    # Clients.

    def _connect(self, now: int, source: int, connect: Connect, effects: Effects) -> None:
        if not self.member.is_serving or connect.zxid > self.tree.zxid:
            effects.append((CLOSE, source))
            return
        session = connect.session
        self._forget(one for one in self._connections.values() if one.session == session)
        if session:
            connection = Connection(source, connect, session)
            self._hand_over(now, Forwarded(session, connection.number, 0, None), effects)
        else:
            self._id += 1
            connection = Connection(source, connect, self._id)
            change = CreateSessionTxn(timeout_ms=self._granted_ms(connect.timeout_ms))
            forwarded = Forwarded(connection.session, connection.number, 0, change)
            self._hand_over(now, forwarded, effects)
        self._connections[connection.number] = connection

    def _granted_ms(self, timeout_ms: int) -> int:
        least, most = self._timing.sessions_ms
        return min(max(timeout_ms, least), most)

    def _heard(self, now: int, frame: Call | Ping, effects: Effects) -> None:
        connection = self._connections.get(frame.connection)
        if connection is None:
            return  # It was closed meanwhile, and its client knows.
        if self.member.mode is Mode.LEADING:
            self._sessions.touch(now, connection.session)
        else:
            self._touched[connection.session] = None
        for one in connection.stream.take(frame.sequence, frame):
            connection.asked.append(PendingRequest(one))
            if isinstance(one, Call):
                self._called(now, connection, one, effects)
        self._answer(connection, effects)

    def _called(self, now: int, connection: Connection, call: Call, effects: Effects) -> None:
        """Hand over to the leader what is not read here."""
        body, session = call.body, connection.session
        if isinstance(body, SetWatches):
            return
        if isinstance(body, CloseSession):
            forwarded = Forwarded(session, connection.number, call.correlation, _END)
        elif isinstance(body.operations[0], GetData | Exists | GetChildren):
            return
        elif isinstance(body.operations[0], Sync):
            forwarded = Forwarded(session, connection.number, call.correlation, _SYNC)
        else:
            writes = tuple(
                one for one in body.operations if isinstance(one, Create | SetData | Delete | Check)
            )
            assert len(writes) == len(body.operations), body
            forwarded = Forwarded(session, connection.number, call.correlation, writes)
        self._hand_over(now, forwarded, effects)

    def _answer(self, connection: Connection, effects: Effects) -> None:
        """Answer what can be answered, up to the first request that waits."""
        asked = connection.asked
        while asked:
            frame = asked[0].frame
            if isinstance(frame, Ping):
                connection.pong(frame, effects)
            else:
                response = asked[0].response or self._read(connection, frame.body, effects)
                if response is None:
                    return
                connection.reply(frame, response, effects)
            asked.popleft()

    def _read(self, connection: Connection, body: Body, effects: Effects) -> ZkResponse | None:
        """Answer from the tree; None: the request is no read."""
        if isinstance(body, SetWatches):
            for what, path in self._watches.set_again(body, connection.number, self.tree):
                connection.fired(what, path, effects)
            return ZkResponse(-1, 0, self.tree.zxid, ())
        if isinstance(body, CloseSession):
            return None
        operation = body.operations[0]
        if not isinstance(operation, GetData | Exists | GetChildren):
            return None
        outcome = self._watches.read(operation, connection.number, self.tree)
        return ZkResponse(body.correlation, outcome.error, self.tree.zxid, (outcome,))

    def _respond(
        self,
        connection: Connection,
        xid: int,
        effects: Effects,
        *,
        zxid: int,
        error: int = 0,
        outcomes: tuple[ZkOutcome, ...] = (),
    ) -> None:
        for asked in connection.asked:
            if asked.frame.correlation == xid and isinstance(asked.frame, Call):
                correlation = asked.frame.body.correlation
                asked.response = ZkResponse(correlation, error, zxid, outcomes)
                self._answer(connection, effects)
                return

    def _forget(self, connections: Iterable[Connection]) -> None:
        for connection in tuple(connections):
            del self._connections[connection.number]
            self._watches.forget(connection.number)

    # The leader.

    def _hand_over(self, now: int, forwarded: Forwarded, effects: Effects) -> None:
        if self.member.mode is Mode.LEADING:
            self._take(now, self._number, forwarded, effects)
            return
        epoch, sequence = self.member.epoch, self._forwarded_count
        self._forwarded_count += 1
        forward = Forward(-1, self._number, epoch.number, self._stream, sequence, forwarded)
        effects.append((SEND, epoch.leader, forward))

    def _forwarded(self, now: int, forward: Forward, effects: Effects) -> None:
        if not self._leads() or forward.epoch != self.member.epoch.number:
            return
        stream = self._streams.setdefault(forward.stream, Stream())
        for one in stream.take(forward.sequence, forward.forwarded):
            self._take(now, forward.server, one, effects)

    def _take(self, now: int, server: int, forwarded: Forwarded, effects: Effects) -> None:
        session, change, connection = forwarded.session, forwarded.change, forwarded.connection
        owner = (server, connection)
        self._sessions.touch(now, session)
        if change is None or isinstance(change, CreateSessionTxn):
            self._sessions.belongs(session, owner)
        epoch, xid = self.member.epoch, forwarded.xid
        if not change:
            granted = Granted(-1, epoch.number, len(epoch.log), connection, xid)
            if server == self._number:
                self._waiting.append(granted)
            else:
                effects.append((SEND, server, granted))
        elif self._sessions.is_owner(session, owner):
            self.member.propose(
                now, session, change, effects, server=server, connection=connection, xid=xid
            )

    # Requests that wait until this server has applied all that the leader had.

    def _granted(self, granted: Granted) -> None:
        member = self.member
        if member.mode is Mode.FOLLOWING and member.epoch.number == granted.epoch:
            self._waiting.append(granted)

    def _release(self, effects: Effects) -> None:
        """Go on with what had to wait for all that the leader had, before more is applied."""
        while self._waiting and self._waiting[0].position <= self.member.applied:
            self._go_on(self._waiting.pop(0), effects)

    def _go_on(self, granted: Granted, effects: Effects) -> None:
        connection = self._connections.get(granted.connection)
        if connection is None:
            return
        if granted.xid:
            zxid, outcomes = self.tree.zxid, (ZkOutcome(),)
            self._respond(connection, granted.xid, effects, zxid=zxid, outcomes=outcomes)
            return
        timeout_ms = self.tree.sessions.get(connection.session)
        if timeout_ms is None:
            connection.connected(0, 0, effects)
            self._forget((connection,))
        else:
            connection.connected(connection.session, timeout_ms, effects)

    # Calls of the member.

    def applied(self, now: int, entry: LogEntry, effects: Effects) -> None:
        """Apply a committed entry: push what it fires, then answer who asked for it."""
        transaction = decision(self.tree, entry)
        if transaction is None:
            self.tree.zxid, result = entry.zxid, Applied(0)
        else:
            result = applied(self.tree, transaction)
        if result.fired:
            effects.append((NOTE, ZNODES_CHANGED, entry.zxid, entry.session, self._changes(result)))
        for fired in result.fired:
            self._fire(fired, effects)
        change = entry.change
        if self._leads():
            if isinstance(change, CreateSessionTxn):
                self._sessions.open(now, entry.session, change.timeout_ms)
                self.alarm.by(self._sessions.due_ns)
            elif isinstance(change, CloseSessionTxn):
                self._sessions.end(entry.session)
        if entry.server == self._number:
            self._done(entry, result, effects)
        if isinstance(change, CloseSessionTxn):
            self._end(entry, effects)
        self._release(effects)

    def _changes(self, result: Applied) -> tuple[tuple[str, bytes | None, int], ...]:
        """Return what became of each znode that a transaction changed."""
        paths = dict.fromkeys(path for what, path in result.fired if what is not _CHILDREN)
        found = ((path, self.tree.znodes.get(path)) for path in paths)
        return tuple(
            (path, None, -1) if znode is None else (path, znode.data or b"", znode.version)
            for path, znode in found
        )

    def _fire(self, fired: Fired, effects: Effects) -> None:
        what, path = fired
        for number in self._watches.fire(fired):
            self._connections[number].fired(what, path, effects)

    def _done(self, entry: LogEntry, result: Applied, effects: Effects) -> None:
        connection = self._connections.get(entry.connection)
        if connection is None:
            return
        if isinstance(entry.change, CreateSessionTxn):
            connection.connected(entry.session, entry.change.timeout_ms, effects)
            return
        self._respond(
            connection,
            entry.xid,
            effects,
            zxid=entry.zxid,
            error=result.error,
            outcomes=result.outcomes,
        )

    def _end(self, entry: LogEntry, effects: Effects) -> None:
        """Close the connections of a session that has ended, but for that of who ended it."""
        over = [one for one in self._connections.values() if one.session == entry.session]
        effects.extend((CLOSE, one.source) for one in over if one.number != entry.connection)
        self._forget(over)

    def served(self, now: int) -> None:
        """Take clients from here on."""
        if self.member.mode is Mode.LEADING:
            self._streams.clear()
            self._sessions.begin(now, self.tree.sessions)
            self.alarm.by(self._sessions.due_ns)
        else:
            self._id += 1
            self._stream, self._forwarded_count = self._id, 0

    def beaten(self, now: int, epoch: Epoch) -> None:
        """Have the leader know of the sessions that followers heard of."""
        if self.member.mode is Mode.LEADING:
            for session in epoch.touched:
                self._sessions.touch(now, session)
            epoch.touched.clear()
        else:
            epoch.touched.update(self._touched)
            self._touched.clear()

    def reset(self) -> None:
        """Begin with an empty tree."""
        self.tree = DataTree()

    def left(self, effects: Effects) -> None:
        """Serve nobody: the leader is gone, or its majority."""
        effects.extend((CLOSE, one.source) for one in self._connections.values())
        self._connections.clear()
        self._watches = Watches()
        self._waiting.clear()
        self._touched.clear()
