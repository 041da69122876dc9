"""Histories of Kafka's clients to `operations` and `records`: Jepsen's workload, or complete lines.

    {:type :ok, :f :send, :value [[:send 5 [272 140]]], …}           [:send key [offset value]]
    {:type :ok, :f :poll, :value [[:poll {5 [[272 140] [273 142]]}]], …}
    {:type :ok, :f :assign, :value [5 6], :seek-to-beginning? true, …}

An operation with sends and polls (`:txn`) becomes one of each, for a row of `operations` is one or
the other. `:f :final-read` is ours: a poll that read one key from its first to its last offset.

*Sessions.* A key stays a consumer's as long as it is assigned: an assign ends the session of each
key that it does not name (of all, with `:seek-to-beginning?`), a subscribe and a rebalance that
a poll tells of (`:rebalance-log`) those of all. An end that is not ok may have done all that.
What else a client did (`:crash`, `:debug-topic-partitions`) is counted and left out.

Source: jepsen.tests.kafka.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.history.open.event import EventLine, integer, refuse_unknown, word
from fencepost.history.open.pairing import Paired, paired
from fencepost.history.open.refusal import BadLineError, at_line, shown
from fencepost.history.open.scalars import Numbering, key_text
from fencepost.history.operation import F, Outcome

_INT32_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1
_LEFT_OUT: Final = ("crash", "debug-topic-partitions")
_DATA: Final = ("send", "poll", "txn", "final-read")
_OWNERSHIP: Final = ("assign", "subscribe")
_COMPLETE: Final = frozenset(
    ("index", "process", "f", "key", "call_ns", "return_ns", "outcome", "error", "records")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRecord:
    """A record sent or polled."""

    key: str
    offset: int | None
    value: int
    session: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOperation:
    """One row of `operations`, with its rows of `records`."""

    order: int
    """The place of its call among all; the parts of one that was split have the same."""
    process: int
    f: F
    key: str | None
    call_ns: int
    return_ns: int | None
    outcome: Outcome
    error: str | None
    records: tuple[SeenRecord, ...]


@dataclass(slots=True)
class _Ownership:
    """The keys that a consumer holds, and the number of times it has got each."""

    sessions: dict[str, int] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)

    def session(self, key: str) -> int:
        """Return the session of a record of this key that it polls now."""
        if key not in self.held:
            self.held.add(key)
            self.sessions[key] = self.sessions.get(key, -1) + 1
        return self.sessions[key]


class KafkaReader:
    """A reader of lines as operations, which counts whatever else it meets."""

    def __init__(self, numbering: Numbering, *, source: str) -> None:
        self._numbering = numbering
        self._source = source
        self._owners: dict[int, _Ownership] = defaultdict(_Ownership)
        self.left_out: Counter[str] = Counter()
        self.consumed: set[str] = set()
        """The ways in which consumers got their keys: assign, subscribe."""

    def of_events(self, events: Iterable[EventLine]) -> Iterator[ClientOperation]:
        """Yield operations in the order in which they ended.

        Raise MalformedHistoryError for wrong lines.
        """
        for pair in paired(events, source=self._source, process_goes_on=True):
            with at_line(self._source, (pair.completed or pair.invoked).line):
                yield from self._operations(pair)

    def of_lines(
        self, numbered: Iterable[tuple[int, Mapping[str, Any]]]
    ) -> Iterator[ClientOperation]:
        """Yield the operations of complete lines, in the order of their calls."""
        last_ns, last_index = 0, -1
        for order, (line, fields) in enumerate(numbered):
            with at_line(self._source, line):
                operation = self._complete(order, fields)
                if operation.call_ns < last_ns:
                    raise BadLineError(
                        f"expected operations in the order of their calls, the next at {last_ns} "
                        f"ns or later; found {operation.call_ns} ns"
                    )
                if fields.get("index") is not None:
                    last_index = integer(fields, "index", least=last_index + 1)
                last_ns = operation.call_ns
            yield operation

    def _operations(self, pair: Paired) -> Iterator[ClientOperation]:
        f = pair.invoked.f
        if f in _LEFT_OUT:
            self.left_out[f] += 1
            return
        if f in _OWNERSHIP:
            self._assign(pair)
            return
        if f not in _DATA:
            known = ", ".join((*_DATA, *_OWNERSHIP, *_LEFT_OUT))
            raise BadLineError(f"expected f of a client of Kafka: {known}; found {shown(f)}")
        sends, polls, polled = self._records(pair)
        final = f == F.FINAL_READ
        if sends:
            key = sends[0].key if len({record.key for record in sends}) == 1 else None
            yield self._operation(pair, F.SEND, key=key, records=sends)
        if polled or not sends:
            keys = {record.key for record in polls} | (_asked_keys(pair) if final else set())
            if final and len(keys) != 1:
                raise BadLineError(f"expected a final read of one key; found {len(keys)}")
            yield self._operation(
                pair,
                F.FINAL_READ if final else F.POLL,
                key=keys.pop() if final else None,
                records=polls,
            )

    def _operation(
        self, pair: Paired, f: F, *, key: str | None, records: tuple[SeenRecord, ...]
    ) -> ClientOperation:
        completed = pair.completed
        return ClientOperation(
            order=pair.order,
            process=_process(pair.invoked.process),
            f=f,
            key=key,
            call_ns=pair.invoked.time_ns,
            return_ns=None if completed is None else completed.time_ns,
            outcome=pair.outcome,
            error=None if completed is None or pair.outcome is Outcome.OK else completed.error,
            records=records,
        )

    def _assign(self, pair: Paired) -> None:
        if pair.outcome is Outcome.FAIL:
            return
        self.consumed.add(pair.invoked.f)
        value = pair.invoked.value
        if not isinstance(value, tuple):
            raise BadLineError(f"expected the keys of this {pair.invoked.f}; found {shown(value)}")
        keys = {key_text(key) for key in value}
        held = self._owners[pair.invoked.process].held
        plain = pair.invoked.f == "assign" and pair.outcome is Outcome.OK
        if plain and not pair.invoked.fields.get("seek-to-beginning?"):
            held &= keys
        else:
            held.clear()

    def _records(self, pair: Paired) -> tuple[tuple[SeenRecord, ...], tuple[SeenRecord, ...], bool]:
        """Return the records sent, the records polled, and whether there was a poll at all."""
        asked = _steps(pair.invoked)
        answered = asked if pair.completed is None else _steps(pair.completed)
        if [step[0] for step in asked] != [step[0] for step in answered]:
            raise BadLineError(
                f"expected an end of the steps of line {pair.invoked.line}; found others: "
                f"{shown(answered)}"
            )
        owner = self._owners[pair.invoked.process]
        rebalanced = bool(pair.completed and pair.completed.fields.get("rebalance-log"))
        sends: list[SeenRecord] = []
        polls: list[SeenRecord] = []
        for told, step in zip(asked, answered, strict=True):
            if step[0] == "send":
                sends.append(self._sent(told, step))
            else:
                if rebalanced:
                    owner.held.clear()
                polls += self._polled(step, owner)
        if rebalanced:
            owner.held.clear()
        return tuple(sends), tuple(polls), any(step[0] == "poll" for step in asked)

    def _sent(self, asked: tuple[Any, ...], step: tuple[Any, ...]) -> SeenRecord:
        if len(asked) != 3 or len(step) != 3 or asked[1] != step[1]:  # noqa: PLR2004  # f, key, value
            raise BadLineError(f"expected [:send key value] and its end; found {shown(step)}")
        key = key_text(step[1])
        offset, value = step[2] if isinstance(step[2], tuple) else (None, step[2])
        sent = asked[2][1] if isinstance(asked[2], tuple) else asked[2]
        if value != sent:
            raise BadLineError(
                f"expected the end of the send of {shown(sent)}; found {shown(value)}"
            )
        return SeenRecord(key=key, offset=_offset(offset), value=self._numbering.number(key, value))

    def _polled(self, step: tuple[Any, ...], owner: _Ownership) -> Iterator[SeenRecord]:
        for key, pairs in _by_key(step):
            for pair in pairs:
                if not isinstance(pair, tuple) or len(pair) != 2:  # noqa: PLR2004  # offset, value
                    raise BadLineError(f"expected [offset value]; found {shown(pair)}")
                yield SeenRecord(
                    key=key,
                    offset=_offset(pair[0]),
                    value=self._numbering.number(key, pair[1]),
                    session=owner.session(key),
                )

    def _complete(self, order: int, fields: Mapping[str, Any]) -> ClientOperation:
        refuse_unknown(fields, _COMPLETE)
        f, outcome = word(fields, "f"), word(fields, "outcome")
        if f not in set(F) or outcome not in set(Outcome):
            raise BadLineError(
                f"expected f {', '.join(F)} and outcome {', '.join(Outcome)}; found {f}, {outcome}"
            )
        call_ns = integer(fields, "call_ns")
        unended = outcome == Outcome.INFO and fields.get("return_ns") is None
        return ClientOperation(
            order=order,
            process=_process(integer(fields, "process")),
            f=F(f),
            key=None if fields.get("key") is None else key_text(fields["key"]),
            call_ns=call_ns,
            return_ns=None if unended else integer(fields, "return_ns", least=call_ns),
            outcome=Outcome(outcome),
            error=None if fields.get("error") is None else word(fields, "error"),
            records=tuple(self._record(item) for item in fields.get("records", ())),
        )

    def _record(self, item: Any) -> SeenRecord:
        if not isinstance(item, tuple) or len(item) not in (3, 4):
            raise BadLineError(f"expected [key, offset, value, session]; found {shown(item)}")
        key = key_text(item[0])
        session = item[3] if len(item) > 3 else 0  # noqa: PLR2004  # the fourth
        if type(session) is not int or not 0 <= session <= _INT32_MAX:
            raise BadLineError(f"expected a session: an integer; found {shown(session)}")
        return SeenRecord(
            key=key,
            offset=_offset(item[1]),
            value=self._numbering.number(key, item[2]),
            session=session,
        )


def _steps(event: EventLine) -> tuple[tuple[Any, ...], ...]:
    if not isinstance(event.value, tuple) or not event.value:
        raise BadLineError(f"expected steps [:send …] or [:poll …]; found {shown(event.value)}")
    return tuple(_step(step) for step in event.value)


def _step(step: Any) -> tuple[Any, ...]:
    if isinstance(step, tuple) and step:
        f = getattr(step[0], "name", step[0])
        if f in ("send", "poll"):
            return (f, *step[1:])
    raise BadLineError(f"expected a step [:send …] or [:poll …]; found {shown(step)}")


def _by_key(step: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    found = step[1] if len(step) > 1 and step[1] is not None else {}
    pairs = tuple(found.items()) if isinstance(found, dict) else found
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], tuple):  # noqa: PLR2004
            raise BadLineError(f"expected {{key [[offset value] …]}}; found {shown(found)}")
        yield key_text(pair[0]), pair[1]


def _asked_keys(pair: Paired) -> set[str]:
    steps = _steps(pair.completed or pair.invoked)
    return {key for step in steps if step[0] == "poll" for key, _ in _by_key(step)}


def _offset(found: Any) -> int | None:
    if found is not None and (type(found) is not int or not 0 <= found <= _INT64_MAX):
        raise BadLineError(f"expected an offset: an integer or nil; found {shown(found)}")
    return found


def _process(process: int) -> int:
    if process > _INT32_MAX:
        raise BadLineError(f"expected a process below 2^31; found {process}")
    return process
