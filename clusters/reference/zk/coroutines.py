"""Coroutines of a node, each resumed within the event that brings what it waits for.

A coroutine is plain sequential code: it awaits an answer of ZooKeeper's, or its turn in the
controller's queue. There is no event loop and no scheduling: it goes on before anything else of the
event is done, so the order of effects is the order of events.

A result is asked for once the coroutine is suspended, so that an answer that is there at once
resumes it like any other. A coroutine whose result will never come gets a `NotDoneError`, which
ends it unless it catches that: so all end with the session in which they asked. Those of a
controller epoch end with it (`Coroutines.end`).
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from fencepost.clusters.node_port.effects import Effects

_Value = TypeVar("_Value")

Started = Coroutine["Result[Any]", None, object]
"""A call of an `async def`, for `Coroutines.run`."""


class NotDoneError(Exception):
    """The awaited result of a coroutine will never come."""


class Result(Generic[_Value]):
    """Something that one coroutine awaits.

    `ask`: (now, this result, effects), called once the coroutine is suspended; it sees to it that
    `done` or `failed` is called, at most once.
    """

    __slots__ = ("_ask", "_coroutine", "_coroutines", "_error", "_value")

    def __init__(self, ask: "Callable[[int, Result[_Value], Effects], None]") -> None:
        self._ask = ask
        self._coroutines: Coroutines | None = None
        self._coroutine: Started | None = None
        self._value: _Value | None = None
        self._error: NotDoneError | None = None

    def __await__(self) -> "Generator[Result[Any], None, _Value]":
        yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # `done` has set it

    def begin(
        self, now: int, coroutines: "Coroutines", coroutine: Started, effects: Effects
    ) -> None:
        """Ask: this coroutine waits."""
        self._coroutines, self._coroutine = coroutines, coroutine
        self._ask(now, self, effects)

    def done(self, now: int, value: _Value, effects: Effects) -> None:
        """Resume the coroutine with this value."""
        self._value = value
        self._resume(now, effects)

    def failed(self, now: int, error: NotDoneError, effects: Effects) -> None:
        """Resume the coroutine with an error."""
        self._error = error
        self._resume(now, effects)

    def _resume(self, now: int, effects: Effects) -> None:
        assert self._coroutines is not None, "nothing was asked for"
        assert self._coroutine is not None, "nothing was asked for"
        self._coroutines.run(now, self._coroutine, effects)


class Coroutines:
    """Coroutines that end together: those of a node's session, or of a controller epoch."""

    __slots__ = ("effects", "is_over", "now")

    def __init__(self) -> None:
        self.is_over = False
        self.now = 0
        """The time of the event that a coroutine is resumed in; coroutines alone read it."""
        self.effects: Effects = []
        """The effects of that event."""

    def run(self, now: int, coroutine: Started, effects: Effects) -> None:
        """Begin or resume a coroutine, and return once it waits or has ended."""
        if self.is_over:
            coroutine.close()
            return
        self.now, self.effects = now, effects
        try:
            result = coroutine.send(None)
        except (StopIteration, NotDoneError):
            return
        if self.is_over:
            coroutine.close()
        else:
            result.begin(now, self, coroutine, effects)

    def spawn(self, coroutine: Started) -> None:
        """Begin another coroutine within the event that the caller, one of these, is resumed in."""
        self.run(self.now, coroutine, self.effects)

    def end(self) -> None:
        """Let none of them go on: each ends where it waits."""
        self.is_over = True
