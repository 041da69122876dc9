"""ZooKeeper as a node sees it: operations, outcomes, watches and its session, as messages.

A node asks the ensemble as it asks another node: by SEND to ZOOKEEPER, and hears its answer as an
event of source ZOOKEEPER. Which server is asked, pings, and connecting again are the shell's: a
client library in a process, a model in virtual time. What ZooKeeper promises a session is promised
here: answers come in the order of the requests; a watch fires once, and before any answer shows
what it tells of; a session only goes forward.

A node opens its session (`OpenSession`), and is told by `SessionEvent` what becomes of it. When the
connection breaks, it is told so (SUSPENDED), and then each request without an answer is answered
CONNECTION_LOSS: it may have been carried out. A request that is made before the session is
connected again is answered so at once. When the session has expired, its ephemeral znodes and
watches are gone; the node opens another one.

Source: the ZooKeeper Programmer's Guide; error codes as in `KeeperException.Code`.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import ClassVar, Final

ZOOKEEPER: Final = 2000
"""The id by which a node addresses the ensemble; its servers are 2000 + their `myid`."""


class ZkError(IntEnum):
    """ZooKeeper's error codes, those of them that a client of this kind can get."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    """Of an operation of a multi behind the one that failed: it was not tried."""
    CONNECTION_LOSS = -4
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112


@dataclass(slots=True)
class Create:
    """Make a znode; its parent must be there. `sequential`: ten digits are put behind its name."""

    path: str
    data: bytes
    ephemeral: bool = False
    sequential: bool = False


@dataclass(slots=True)
class SetData:
    """Replace the data of a znode, if it has this version; -1: any."""

    path: str
    data: bytes
    version: int = -1


@dataclass(slots=True)
class Delete:
    """Remove a znode without children, if it has this version; -1: any."""

    path: str
    version: int = -1


@dataclass(slots=True)
class Check:
    """In a multi: fail unless the znode is there and has this version; -1: any."""

    path: str
    version: int = -1


@dataclass(slots=True)
class GetData:
    """Read a znode. `watch`: tell once when its data changes or it is gone."""

    path: str
    watch: bool = False


@dataclass(slots=True)
class Exists:
    """Read whether a znode is there. `watch`: tell once when it is made, changed or gone."""

    path: str
    watch: bool = False


@dataclass(slots=True)
class GetChildren:
    """Read the names of its children. `watch`: tell once when one comes or goes, or it is gone."""

    path: str
    watch: bool = False


@dataclass(slots=True)
class Sync:
    """Have the session's server catch up with the leader before the next read is answered."""

    path: str


Write = Create | SetData | Delete | Check
Operation = Write | GetData | Exists | GetChildren | Sync


@dataclass(slots=True)
class Stat:
    """The metadata of a znode."""

    czxid: int
    """The zxid that made it."""
    mzxid: int
    """The zxid that changed its data last."""
    version: int
    """The number of changes of its data."""
    ephemeral_owner: int
    """The session that it ends with; 0: none."""
    children_count: int = 0


@dataclass(slots=True)
class ZkOutcome:
    """The result of one operation: a field is set by the operations that return it."""

    error: int = 0
    path: str = ""
    """Of a Create: the znode's path, with the digits of a sequential one."""
    data: bytes = b""
    children: tuple[str, ...] = ()
    """In the order of their names."""
    stat: Stat | None = None
    """Of Create, SetData, GetData, Exists, GetChildren."""


@dataclass(slots=True)
class ZkRequest:
    """One operation; or several writes that are carried out all together or not at all."""

    kind: ClassVar[int] = 72
    correlation: int
    operations: tuple[Operation, ...]


@dataclass(slots=True)
class ZkResponse:
    """An outcome for each operation. `error`: that of the first one that failed, or of the whole.

    CONNECTION_LOSS and SESSION_EXPIRED are of the whole, without outcomes.
    """

    kind: ClassVar[int] = 73
    correlation: int
    error: int
    zxid: int
    """The last transaction that the answering server had applied."""
    outcomes: tuple[ZkOutcome, ...]


@dataclass(slots=True)
class OpenSession:
    """Open a session. Answered by events, never by a message with its correlation."""

    kind: ClassVar[int] = 74
    correlation: int
    timeout_ms: int


class SessionState(StrEnum):
    """The states of a session."""

    CONNECTED = "connected"
    """It was opened, or found a server again."""
    SUSPENDED = "suspended"
    """Its connection broke; it lives on in the ensemble until its time-out."""
    EXPIRED = "expired"
    """The ensemble has ended it; the node learns that once it reaches a server again."""


@dataclass(slots=True)
class SessionEvent:
    """The state of the node's session has changed."""

    kind: ClassVar[int] = 75
    correlation: int
    """Always -1."""
    state: SessionState
    session_id: int


@dataclass(slots=True)
class CloseSession:
    """End the session at once; its ephemeral znodes go. No event follows."""

    kind: ClassVar[int] = 76
    correlation: int


class WatchType(StrEnum):
    """The kinds of change that a watch reports."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"


@dataclass(slots=True)
class WatchEvent:
    """A watch has fired; it is gone with that.

    Watches last as long as the session: what one missed while the connection was broken, it tells
    once the session is connected again.
    """

    kind: ClassVar[int] = 77
    correlation: int
    """Always -1."""
    type: WatchType
    path: str
