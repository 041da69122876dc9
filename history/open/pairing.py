"""Invocations and their completions, put together; what was never completed stays open.

A process has one operation open at a time. With its first info it ends, as a client whose operation
may still take effect does: whatever follows has another number. (Clients of Kafka go on: a send
that timed out does not stop its producer.)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fencepost.history.open.event import EventLine
from fencepost.history.open.refusal import BadLineError, at_line
from fencepost.history.operation import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """An operation as its two events tell it."""

    order: int
    """The 0-based place of its invocation among all."""
    invoked: EventLine
    completed: EventLine | None

    @property
    def outcome(self) -> Outcome:
        """The outcome; info if it was never completed."""
        return Outcome.INFO if self.completed is None else Outcome(self.completed.type)


def paired(
    events: Iterable[EventLine], *, source: str, process_goes_on: bool = False
) -> Iterator[Paired]:
    """Yield operations, in the order in which they ended; what is open at the end comes last.

    `process_goes_on`: a process may go on after an info. Raises MalformedHistoryError for a
    completion without an invocation, one of another `f`, one before its invocation, or a process
    with two operations open.
    """
    waiting: dict[int, tuple[int, EventLine]] = {}
    ended: dict[int, int] = {}
    order = 0
    for event in events:
        with at_line(source, event.line):
            if event.type == "invoke":
                _refuse_busy(event, waiting, ended)
                waiting[event.process] = (order, event)
                order += 1
                continue
            begun = waiting.pop(event.process, None)
            if begun is None:
                raise BadLineError(
                    f"expected an invocation of process {event.process} before its {event.type}; "
                    "found none"
                )
            _refuse_other(begun[1], event)
        if event.type == "info" and not process_goes_on:
            ended[event.process] = event.line
        yield Paired(order=begun[0], invoked=begun[1], completed=event)
    for number, event in waiting.values():
        yield Paired(order=number, invoked=event, completed=None)


def _refuse_busy(
    event: EventLine, waiting: dict[int, tuple[int, EventLine]], ended: dict[int, int]
) -> None:
    if event.process in waiting:
        raise BadLineError(
            f"expected one open operation of process {event.process}; found a second one, while "
            f"that of line {waiting[event.process][1].line} is open"
        )
    if event.process in ended:
        raise BadLineError(
            f"expected no more of process {event.process}, which ended with the info of line "
            f"{ended[event.process]}; found an invocation: give the process that continues "
            "another number"
        )


def _refuse_other(invoked: EventLine, completed: EventLine) -> None:
    if completed.f != invoked.f:
        raise BadLineError(
            f"expected the end of the {invoked.f} of line {invoked.line}; found one of "
            f"{completed.f}"
        )
    if (completed.stated_ns or 0) < (invoked.stated_ns or 0):
        raise BadLineError(
            f"expected a return at or after the call of line {invoked.line}, "
            f"{invoked.stated_ns} ns; found {completed.stated_ns} ns"
        )
