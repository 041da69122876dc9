"""One session with a ZooKeeper ensemble, and the operations on znodes that are open in it.

kazoo queues requests and answers them by callbacks on its own threads; ZooKeeper carries out those
of a session in the order in which they were queued. An operation is in the journal before it is
queued. Its outcome:

- ok, with the Stat of the state that it made or read;
- fail without an error: ZooKeeper refused it (no node, node exists, another version);
- fail with an error: a read without an answer, which changes nothing; a create without a parent;
- info: a write without an answer, for the connection or the session was lost first.

A delete is a transaction of a set and a delete, both or neither of which take effect: the answer to
the set has the Stat, and so tells which life and which version of it the delete ended.

`sync-read` and `final-read` queue a sync and the read right behind it.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
)
from kazoo.retry import KazooRetry

from fencepost.history.clock import Clock
from fencepost.history.errors import ErrorSystem, name_of, outcome_of
from fencepost.history.journal import EventJournal
from fencepost.history.operation import Outcome
from fencepost.workloads.generators.znodes import ZnodeF, ZnodeIntent

_READS: Final = frozenset((ZnodeF.READ, ZnodeF.SYNC_READ, ZnodeF.FINAL_READ))
_REFUSALS: Final = (BadVersionError, NodeExistsError, NoNodeError)
_GIVEN_UP_TIMEOUTS: Final = 3.0
"""The session timeouts for which a connection may be away."""
_CLOSED: Final = -2000
"""The registry's code for errors of kazoo's that are none of ZooKeeper's."""
_RETRY_S: Final = 0.05
_RETRY_S_MAX: Final = 0.3

Row = dict[str, Any]
Ended = Callable[[int, ZnodeIntent, Row], None]
"""Told of an end: the logical client, the operation, and what is recorded of its end."""


class ZnodeSession:
    """A connection that is kept up; a session that expires is followed by a new one."""

    def __init__(
        self,
        servers: tuple[str, ...],
        *,
        timeout_ms: int,
        journal: EventJournal,
        clock: Clock,
        ended: Ended,
        value_bytes: int = 1,
    ) -> None:
        self._servers = servers
        self._timeout_s = timeout_ms / 1000
        self._server = ""
        self._client = self._new_client()
        self._up_s = time.monotonic()
        """The last time at which it was seen to be up."""
        self._journal = journal
        self._clock = clock
        self._ended = ended
        self._value_bytes = value_bytes
        self.failure: BaseException | None = None
        """The error of a callback: what came back could not be recorded."""
        self.open_count = 0
        self._counting = threading.Lock()

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._client.start_async()

    @property
    def is_up(self) -> bool:
        """True if requests go out at once."""
        return bool(self._client.connected) and bool(self._server)

    def renew(self) -> None:
        """Give up a connection that has been away for long, and begin another.

        A server that has seen less than a client has refuses it, even without a session: after a
        loss of data only a client that knows of nothing is let in.
        """
        if self.is_up:
            self._up_s = time.monotonic()
        elif time.monotonic() - self._up_s > _GIVEN_UP_TIMEOUTS * self._timeout_s:
            threading.Thread(target=_closed, args=(self._client,), daemon=True).start()
            self._server = ""
            self._client = self._new_client()
            self._up_s = time.monotonic()
            self.start()

    def close(self) -> None:
        """End the session; what is open loses its connection."""
        _closed(self._client)

    def ensure(self, path: str) -> None:
        """Ask to create a path that is no key, if it is not there; not recorded."""
        self._client.ensure_path_async(path)

    def send(self, process: int, intent: ZnodeIntent, value: int) -> bool:
        """Record an operation and queue it; `value` is what a write writes. False: no session."""
        client = self._client
        session = _session(client)
        if session is None:
            return False
        begun: Row = {
            "process": process,
            "session": session,
            "server": self._server,
            "key": intent.key,
            "f": intent.f,
            "call_ns": self._clock.now_ns(),
        }
        if intent.expected is not None:
            begun["expected"] = intent.expected
        if intent.f in (ZnodeF.CREATE, ZnodeF.SET, ZnodeF.CAS):
            begun["value"] = value
        number, is_open = self._journal.begin(begun), True
        with self._counting:
            self.open_count += 1

        def on_end(result: Any) -> None:
            nonlocal is_open
            if not is_open:
                return  # kazoo may call twice for a request that met a connection as it went down.
            is_open = False
            row = end_of(intent, result)
            row["return_ns"] = self._clock.now_ns()
            if _session(client) != session:
                # It may have waited for a connection and been sent in the next session.
                row["session"] = ~number
            self._journal.end(number, row)
            with self._counting:
                self.open_count -= 1
            self._ended(process, intent, row)

        def guarded(result: Any) -> None:
            try:
                on_end(result)
            except BaseException as error:
                self.failure = error  # kazoo would only log it.
                raise

        _queue(client, intent, data_of(value, size_min=self._value_bytes)).rawlink(guarded)
        return True

    def _new_client(self) -> KazooClient:
        retry = KazooRetry(max_tries=-1, delay=_RETRY_S, backoff=2, max_delay=_RETRY_S_MAX)
        client = KazooClient(
            hosts=",".join(self._servers),
            timeout=self._timeout_s,
            randomize_hosts=False,
            connection_retry=retry,
        )

        def on_state(_state: object) -> None:
            # kazoo calls this on the thread that owns the connection.
            if client is self._client:
                self._server = _server(client) or self._server

        client.add_listener(on_state)
        return client


def _closed(client: KazooClient) -> None:
    """End a client, which may take as long as an attempt to connect."""
    client.stop()
    client.close()


def _session(client: KazooClient) -> int | None:
    identity = client.client_id
    return None if identity is None else int(identity[0])


def _server(client: KazooClient) -> str:
    """Return the address of the server that a client is connected to; empty without one."""
    try:
        host, port, *_ = client._connection._socket.getpeername()  # noqa: SLF001  # kazoo tells it nowhere else
    except (OSError, AttributeError):
        return ""
    return f"{host}:{port}"


def _queue(client: KazooClient, intent: ZnodeIntent, data: bytes) -> Any:
    """Queue what the operation asks for; return kazoo's promise of the answer."""
    key = intent.key
    match intent.f:
        case ZnodeF.CREATE:
            return client.create_async(key, data, include_data=True)
        case ZnodeF.SET:
            return client.set_async(key, data)
        case ZnodeF.CAS:
            return client.set_async(key, data, version=_version(intent))
        case ZnodeF.DELETE:
            both = client.transaction()
            both.set_data(key, b"", version=_version(intent))
            both.delete(key)
            return both.commit_async()
        case ZnodeF.SYNC_READ | ZnodeF.FINAL_READ:
            client.sync_async(key)
    return client.get_async(key)


def _version(intent: ZnodeIntent) -> int:
    return -1 if intent.expected is None else intent.expected


def data_of(value: int, *, size_min: int) -> bytes:
    """Return the data of a znode with this value: digits, and spaces up to the least size."""
    return (b"%d" % value).ljust(size_min)


def end_of(intent: ZnodeIntent, result: Any) -> Row:
    """Return what an answer says of the operation."""
    try:
        answer = result.get(block=False)
        if intent.f is ZnodeF.DELETE:
            refusals = [one for one in answer if isinstance(one, _REFUSALS)]
            if refusals:
                raise refusals[0]
            stat = answer[0]
            return _ok(stat) | {"version": stat.version - 1}
    except NoNodeError as error:
        if intent.f is ZnodeF.CREATE:
            # Its parent is not there: this is no word on the znode.
            return {"outcome": Outcome.FAIL, "error": _name(error)}
        return {"outcome": Outcome.OK if intent.f in _READS else Outcome.FAIL}
    except _REFUSALS:
        return {"outcome": Outcome.FAIL}
    except (KazooException, TimeoutError, RuntimeError) as error:
        # kazoo's RuntimeError: the server answered another request than the one that was next.
        of_a_write = outcome_of(_code(error), attempts_max=1, system=ErrorSystem.ZOOKEEPER)
        outcome = Outcome.FAIL if intent.f in _READS else of_a_write
        return {"outcome": outcome, "error": _name(error)}
    if intent.f in _READS:
        data, stat = answer
        return _ok(stat) | {"value": int(data)}
    return _ok(answer[1] if intent.f is ZnodeF.CREATE else answer)


def _ok(stat: Any) -> Row:
    return {
        "outcome": Outcome.OK,
        "life": stat.czxid,
        "version": stat.version,
        "zxid": stat.mzxid,
    }


def _name(error: BaseException) -> str:
    return name_of(_code(error), system=ErrorSystem.ZOOKEEPER)


def _code(error: BaseException) -> int:
    """Return ZooKeeper's code of an error of kazoo's; some of those have none."""
    code: int | None = getattr(error, "code", None)
    return _CLOSED if code is None else code
