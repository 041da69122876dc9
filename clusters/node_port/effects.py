"""The effects that a node asks of its shell, and the shell's events: the whole border of the core.

A node is `node.handle(now, source, kind, message, effects)`. `now` is its own monotonic clock, in
ns; `kind` is one of the events below, or the kind of a message; the node appends tuples to
`effects`, whose first element is one of the effects below. It reads no clock, socket, file,
environment or random source, so the same node runs as a process and in the simulator.

`source` is where an answer goes. Between nodes it is a node id; of a client, or of a node that a
process cannot name yet, a negative number that stands for the connection. Whoever a message speaks
for is said by the message alone.

The shell performs the effects of one step in their order, and all of them before the next step of
that node. Appends and writes survive the death of the process at once, the loss of power only once
they are synced. Nothing is performed after EXIT.
"""

from typing import Any, Final, Protocol, runtime_checkable

from fencepost.clusters.node_port.alarm import Alarm

Effects = list[tuple[Any, ...]]

# Effects.
SEND: Final = 0
"""(SEND, target, message): a request to a node id, or the response to the `source` of a request."""
APPEND: Final = 1
"""(APPEND, log, batch): a `Batch` or `MetadataBatch` at the end of a log."""
EXTEND: Final = 12
"""(EXTEND, log, batches): several of them at the end of a partition's log."""
SYNC: Final = 2
"""(SYNC, names, token): make durable what was written so far to these logs and files.

`names` is a tuple; SYNCED with the token follows, later and in order.
"""
TRUNCATE: Final = 3
"""(TRUNCATE, log, offset): drop what is at this offset and above; the offset ends a batch."""
WRITE: Final = 4
"""(WRITE, file, value): replace a small file as a whole; an immutable value of `storage.py`."""
DELETE: Final = 5
"""(DELETE, log): remove a partition's log and its directory."""
CREATE: Final = 6
"""(CREATE, log, topic): make the directory of a partition's log; `topic` is the topic's name."""
ADVANCE: Final = 7
"""(ADVANCE, log, offset): the log begins at this offset now; what is below is in a snapshot."""
EXIT: Final = 8
"""(EXIT, reason): end the process; an empty reason is a clean end."""
CLOSE: Final = 10
"""(CLOSE, source): end the connection that a request came by, which is not answered.

The asker gets UNREACHABLE.
"""
NOTE: Final = 9
"""(NOTE, subject, …): something became true, for observers outside. `notes.py` has the subjects."""
RECOVER: Final = 11
"""(RECOVER,): read the partitions' logs, and cut off what is torn at their ends.

RECOVERED follows once that is done, unless the process has ended by then. No log of a partition is
written to before.
"""

# Events. Their kinds are below those of all messages.
START: Final = 0
"""The first event of an incarnation; the message is the `Contents` of its disk."""
TICK: Final = 1
"""A node looks at its deadlines: every TICK_NS, or when its `alarm` says so. No message."""
SYNCED: Final = 2
"""A SYNC is done; the message is its token."""
UNREACHABLE: Final = 3
"""A request was refused by the host of `source`, or its connection broke; the message is it.

Whether it arrived is not known. A request that vanished in the network causes no event.
"""
STOP: Final = 4
"""The operating system asks the node to end (SIGTERM or SIGINT). No message."""
RECOVERED: Final = 5
"""A RECOVER is done; the message is the `Contents` of the disk, but for METADATA."""

TICK_NS: Final = 20_000_000
"""The latest that a deadline is noticed, in ns."""


class Node(Protocol):
    """The node that a shell drives: a controller or a broker."""

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event; append what is to be done to `effects`."""


@runtime_checkable
class Woken(Protocol):
    """A node that says when it needs its next tick; one that does not gets them all."""

    alarm: Alarm
