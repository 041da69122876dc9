"""The digest that tells two runs of a world apart; and proofs that nodes do nothing forbidden.

A digest is over integers alone (times, hosts, kinds), so that it is the same under any hash seed.
`Witnessed` is for debugging, and takes several times as long: it has a copy of every message made
as it is sent, compares it where it arrives, and lets the digest have what messages say as well.
`proving_idle` sees that a node has nothing to do before it is due.
"""

import pickle
from array import array
from hashlib import blake2b
from typing import Any, Final

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import TICK, Effects
from fencepost.clusters.simulation.host import Handle

_FLUSHED_AT: Final = 1 << 16
_DIGEST_BYTES: Final = 16
_COPIES_MAX: Final = 1 << 16


class Trace:
    """A digest of numbers, in their order. `add` is a list's own append."""

    __slots__ = ("_digest", "_numbers", "add")

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self.add = self._numbers.append

    def flush(self) -> None:
        """Take in what was added, once it is enough to be worth while."""
        if len(self._numbers) >= _FLUSHED_AT:
            self._take_in()

    def add_text(self, text: str) -> None:
        """Take in what a message says."""
        self._take_in()
        self._digest.update(text.encode())

    def hexdigest(self) -> str:
        """Return the digest of all that was added so far."""
        self._take_in()
        return self._digest.hexdigest()

    def _take_in(self) -> None:
        self._digest.update(array("q", self._numbers).tobytes())
        self._numbers.clear()


class MutatedMessageError(AssertionError):
    """A message arrived otherwise than it was sent: sender or receiver has changed it."""


class Witnessed:
    """Messages under way, each with a copy of what it said when it was sent.

    `trace` takes in what they say as they arrive.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._copies: dict[int, tuple[Any, bytes]] = {}

    def sent(self, message: Any) -> None:
        """Copy a message, once, however often it is sent."""
        if len(self._copies) > _COPIES_MAX:
            self._copies.clear()  # what is under way now is not looked at; it is few of many
        if id(message) not in self._copies:
            self._copies[id(message)] = (message, pickle.dumps(message))

    def arrived(self, message: Any) -> None:
        """Raise MutatedMessageError if a message does not say what it did when it was sent."""
        found = self._copies.get(id(message))
        if found is not None and repr(pickle.loads(found[1])) != repr(message):  # noqa: S301
            was = pickle.loads(found[1])  # noqa: S301  # ours, a moment ago
            raise MutatedMessageError(f"sent as {was!r}, arrived as {message!r}")
        if hasattr(message, "kind"):
            self._trace.add_text(repr(message))


def proving_idle(handle: Handle, alarm: Alarm) -> Handle:
    """A node's `handle`, which fails a tick before its time that does or brings up anything."""

    def proving(now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        due_ns = alarm.due_ns
        handle(now, source, kind, message, effects)
        if kind == TICK and now < due_ns:
            if effects:
                raise AssertionError(f"it acts at a tick, due in {due_ns - now} ns")
            if alarm.due_ns < due_ns:
                raise AssertionError(f"it is due {due_ns - alarm.due_ns} ns before what it said")
            alarm.due_ns = due_ns  # what was said before has to do without this tick

    return proving
