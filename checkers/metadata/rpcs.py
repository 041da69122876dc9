"""The tape (`wire`) as requests and their answers: what checks of the control plane compare.

A request and its response have a connection and a correlation id in common, and their items are
matched by topic and partition. A node of a simulated cluster may use a number again on the same
connection: then an answer belongs to the last request before it. Frames that the proxy answered in
a node's place, or never passed on, were no doing of the cluster: `reached` and `answered` tell.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.rows import OPEN_NS

__all__ = ["Rpc", "accepted_registrations", "in_turn", "rpcs", "taken"]

_UNREACHED: Final = ("answered", "dropped", "undeliverable")
_BY_PROXY: Final = "answered"

_COLUMNS: Final = (
    *("frame", "item", "connection", "source", "target", "direction", "time_ns", "forwarded_ns"),
    *("action", "api", "api_version", "correlation_id", "error", "topic", "topic_id", "partition"),
    *("broker_id", "broker_epoch", "leader_id", "leader_epoch", "partition_epoch"),
    *("controller_epoch",),
    *("isr", "isr_epochs", "fetch_offset", "incarnation_id", "fenced", "shutting_down"),
    *("lowest_acknowledged_offset", "metadata_version", "detail"),
)
"""The columns of requests and answers that checks read."""

_Row = Mapping[str, Any]
_Ids = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rpc:
    """One item of a request, and the item of its response that answers it."""

    frame: int
    api: str
    api_version: int
    source: str
    target: str
    connection: int
    asked_ns: int
    """The time when the request had arrived at the proxy: it was sent no later."""
    reached_ns: int | None
    """The time when it was passed on; None: it never reached the target."""
    request: _Row
    """The row of `wire`."""
    response: _Row | None
    """None if the proxy saw none, or made it up."""

    @property
    def answer_frame(self) -> int | None:
        """The frame of the response."""
        return None if self.response is None else int(self.response["frame"])

    @property
    def error(self) -> str | None:
        """The answer's error; None if there is no answer."""
        return None if self.response is None else self.response["error"]

    @property
    def answered_ns(self) -> int | None:
        """The time when the response reached the proxy: sent no later, so decided earlier."""
        return None if self.response is None else int(self.response["time_ns"])

    @property
    def returned_ns(self) -> int | None:
        """The time when the response was passed on to the requesting node; None: it never was."""
        return None if self.response is None else self.response["forwarded_ns"]

    @property
    def ok(self) -> bool:
        """The target answered, without an error."""
        return self.error == "NONE"

    def of(self, column: str) -> Any:
        """Return a column of the request."""
        return self.request[column]

    def answered(self, column: str) -> Any:
        """Return a column of the response; None without a response."""
        return None if self.response is None else self.response[column]


def rpcs(wire: pa.Table, *apis: str) -> Iterator[Rpc]:
    """Yield the requests of these APIs, item by item, in the order of their arrival at the proxy.

    One that is held there is overtaken by others: `taken` has the order of their targets.
    """
    mine = wire.filter(pc.is_in(wire["api"], pa.array(apis, pa.string())))
    rows = mine.select(list(_COLUMNS)).to_pylist()
    answers: dict[_Ids, list[_Row]] = {}
    asked_ns: dict[_Ids, list[int]] = {}
    ordered = _in_order(rows)
    for row in ordered:
        if row["direction"] == "request":
            asked_ns.setdefault(_ids(row), []).append(row["time_ns"])
        elif row["action"] != _BY_PROXY:
            answers.setdefault(_ids(row), []).append(row)
    for row in ordered:
        if row["direction"] == "request":
            candidates = _of_this(row, asked_ns[_ids(row)], answers.get(_ids(row), ()))
            yield _rpc(row, _answer(row, candidates))


def taken(several: Iterable[Rpc]) -> list[Rpc]:
    """Return the requests that reached their target, in the order in which they did."""
    reached = (rpc for rpc in several if rpc.reached_ns is not None)
    return sorted(reached, key=lambda rpc: (rpc.reached_ns, rpc.frame))


def in_turn(several: Iterable[Rpc]) -> Iterator[tuple[Rpc, list[Rpc]]]:
    """Yield the requests as `taken`; with each, those that were answered since the one before it.

    All that were answered with it or with one before it had their answer when it was taken.
    """
    requests = taken(several)
    answered = (rpc for rpc in requests if rpc.answered_ns is not None)
    waiting = deque(sorted(answered, key=lambda rpc: rpc.answered_ns or 0))
    for rpc in requests:
        before = []
        while waiting and (waiting[0].answered_ns or 0) < (rpc.reached_ns or 0):
            before.append(waiting.popleft())
        yield rpc, before


def accepted_registrations(wire: pa.Table) -> Mapping[tuple[int, int], Rpc]:
    """Return the request by which a broker registered, by (broker id, broker epoch).

    Of several that were answered with one epoch it is the one that was answered first: a request
    that was held is told what its repetition, sent later, has made.
    """
    accepted = [
        rpc
        for rpc in rpcs(wire, "BrokerRegistration")
        if rpc.ok and rpc.answered("broker_epoch") is not None
    ]
    found: dict[tuple[int, int], Rpc] = {}
    for rpc in sorted(accepted, key=lambda one: one.answered_ns or 0):
        found.setdefault((rpc.of("broker_id"), rpc.answered("broker_epoch")), rpc)
    return found


def _ids(row: _Row) -> _Ids:
    """Return the fields that a request and its response have in common."""
    return row["api"], row["connection"], row["correlation_id"]


def _of_this(request: _Row, asked_ns: Sequence[int], candidates: Iterable[_Row]) -> Iterable[_Row]:
    """Return these ids' answers that came after the request and before their next request.

    One that the proxy duplicated is on the tape twice at one time: both have all the answers.
    """
    following = bisect_right(asked_ns, request["time_ns"])
    until_ns = asked_ns[following] if following < len(asked_ns) else OPEN_NS
    return [row for row in candidates if request["time_ns"] <= row["time_ns"] < until_ns]


def _in_order(rows: Iterable[_Row]) -> list[_Row]:
    return sorted(rows, key=lambda row: (row["time_ns"], row["frame"], row["item"]))


def _answer(request: _Row, candidates: Iterable[_Row]) -> _Row | None:
    """Return the item that speaks of the same partition; else the one that speaks of none.

    Of several that speak of none (IsrChange), the one in the same place.
    """
    whole = None
    for row in candidates:
        if row["partition"] is None:
            whole = row if whole is None or row["item"] == request["item"] else whole
        elif row["partition"] == request["partition"] and _same_topic(row, request):
            return row
    return whole


def _same_topic(one: _Row, other: _Row) -> bool:
    if one["topic_id"] and other["topic_id"]:
        return bool(one["topic_id"] == other["topic_id"])
    return bool(one["topic"] == other["topic"])


def _rpc(request: _Row, response: _Row | None) -> Rpc:
    reached = None if request["action"] in _UNREACHED else request["forwarded_ns"]
    return Rpc(
        frame=request["frame"],
        api=request["api"],
        api_version=request["api_version"],
        source=request["source"],
        target=request["target"],
        connection=request["connection"],
        asked_ns=request["time_ns"],
        reached_ns=reached,
        request=request,
        response=response,
    )
