"""The sessions of brokers as their active controllers have seen them: terms, contacts, time-outs.

A controller keeps a broker's session from *contact* to contact: the moment at which it takes a
heartbeat under the registration in force. The tape knows that moment between two bounds, when the
request was passed on and when its answer arrived. A controller that comes into office begins by
taking every unfenced broker as heard of at that moment.

Times of the metadata log are wall-clock times of the controller; `Facts.earliest_ns` and
`latest_ns` bound the run's times that they may stand for.

Source: KIP-631; `BrokerHeartbeatManager` (`touch`, `hasValidSession`), in 4.x
`BrokerHeartbeatTracker`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.log_of_record import LogOfRecord
from fencepost.checkers.metadata.records import LEADER_CHANGE
from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.setting_values import whole_number
from fencepost.checkers.sources import Source

_SETTINGS: Final = ("broker.session.timeout.ms", "registration.lease.timeout.ms")
"""The settings of Kafka, and of KIP-631 as first written; a node sets at most one of them."""
_DEFAULT_MS: Final = 9000
"""The default of every release from 3.0 on."""
_NS_A_MILLISECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A controller's time in office."""

    controller_epoch: int
    node: str
    begin_offset: int
    begin_ns: int
    """The time when it surely had begun."""
    begin_earliest_ns: int
    """The last time when it surely had not begun yet."""
    written_ms: NDArray[np.int64]
    """The timestamps of its records, in order: it lived then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contacts:
    """The heartbeats of a registration to one controller.

    Those that reached it, in the order in which they did (`Rpcs.taken`).
    """

    heartbeats: Sequence[Rpc]

    def last_before(self, time_ns: int) -> Rpc | None:
        """Return the last to reach the controller of those heartbeats surely accepted by then."""
        done = [rpc for rpc in self.heartbeats if rpc.ok and (rpc.answered_ns or 0) < time_ns]
        return max(done, key=lambda rpc: rpc.reached_ns or 0, default=None)

    def asked(self, wish: str, *, from_ns: int, until_ns: int) -> bool:
        """Return whether one that asked for `wish` may have been taken between these times.

        One that reached the controller and was not answered may have been taken at any time.
        """
        return any(
            rpc.of(wish)
            and (rpc.reached_ns or 0) <= until_ns
            and (rpc.answered_ns is None or rpc.answered_ns >= from_ns)
            for rpc in self.heartbeats
        )

    def silences(self, *, from_ns: int, until_ns: int) -> Iterator["Silence"]:
        """Yield the times between contacts, and until the end, in which there can have been none.

        One that reached the controller and was not answered may have been taken at any time: what
        follows it is no silence until an answered one.
        """
        heard_ns: int | None = from_ns
        last: Rpc | None = None
        for rpc in self.heartbeats:
            reached_ns, answered_ns = rpc.reached_ns or 0, rpc.answered_ns
            if answered_ns is not None and answered_ns <= from_ns:
                last = rpc if rpc.ok else last
                continue
            if reached_ns >= until_ns:
                break
            if heard_ns is not None and reached_ns > heard_ns:
                yield Silence(begin_ns=heard_ns, end_ns=reached_ns, last=last)
            heard_ns = None if answered_ns is None else max(answered_ns, heard_ns or 0)
            last = rpc if rpc.ok else last
        if heard_ns is not None and until_ns > heard_ns:
            yield Silence(begin_ns=heard_ns, end_ns=until_ns, last=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A time in which a controller cannot have heard of a broker."""

    begin_ns: int
    end_ns: int
    last: Rpc | None
    """The last heartbeat that the controller had accepted; None: none is known."""

    @property
    def length_ns(self) -> int:
        """The length of the session in ns."""
        return self.end_ns - self.begin_ns


def terms_of(log: LogOfRecord, facts: Facts) -> tuple[Term, ...]:
    """Return the terms that the log of record tells of, in order."""
    rows = log.rows.filter(pc.invert(log.rows["snapshot"]))
    elected = rows.filter(pc.equal(rows["type"], LEADER_CHANGE))
    epochs = rows["controller_epoch"].to_numpy()
    written_ms = rows["timestamp_ms"].to_numpy()
    nodes = facts.nodes()
    return tuple(
        Term(
            controller_epoch=row["controller_epoch"],
            node=nodes.get(row["leader"], ""),
            begin_offset=row["metadata_offset"],
            begin_ns=facts.latest_ns(row["timestamp_ms"]),
            begin_earliest_ns=facts.earliest_ns(row["timestamp_ms"]),
            written_ms=np.sort(written_ms[epochs == row["controller_epoch"]]),
        )
        for row in elected.to_pylist()
    )


def term_at(terms: Sequence[Term], metadata_offset: int) -> Term | None:
    """Return the term in which a record was written; None if it began before the log does."""
    place = bisect_right(terms, metadata_offset, key=lambda term: term.begin_offset)
    return terms[place - 1] if place else None


class TermsOfNodes:
    """Terms by node: the last one that a node had begun by some time, deposed since or not."""

    def __init__(self, terms: Sequence[Term]) -> None:
        nodes = {term.node for term in terms}
        mine = {node: [term for term in terms if term.node == node] for node in nodes}
        self._surely = {node: _last_by(of, lambda one: one.begin_ns) for node, of in mine.items()}
        self._perhaps = {
            node: _last_by(of, lambda one: one.begin_earliest_ns) for node, of in mine.items()
        }

    def surely_begun(self, node: str, time_ns: int) -> Term | None:
        """Return the last term that surely had begun."""
        return _begun(self._surely.get(node, ()), time_ns)

    def perhaps_begun(self, node: str, time_ns: int) -> Term | None:
        """Return the last term that can have begun."""
        return _begun(self._perhaps.get(node, ()), time_ns)


def _last_by(terms: Sequence[Term], begin_ns: Callable[[Term], int]) -> list[tuple[int, Term]]:
    """Return (time, the last term by offset of those that begin no later), in order of time."""
    in_order = sorted(terms, key=begin_ns)
    return list(zip(map(begin_ns, in_order), accumulate(in_order, _later), strict=True))


def _later(one: Term, other: Term) -> Term:
    return one if one.begin_offset >= other.begin_offset else other


def _begun(terms: Sequence[tuple[int, Term]], time_ns: int) -> Term | None:
    place = bisect_right(terms, time_ns, key=lambda one: one[0])
    return terms[place - 1][1] if place else None


@remembered
def contacts_of(wire: pa.Table | Source) -> Mapping[tuple[int, int, str], Contacts]:
    """Return the heartbeats on the tape by broker id, broker epoch and target node."""
    beats = rpcs(wire, "BrokerHeartbeat").taken().by("broker_id", "broker_epoch", "target")
    return {
        (broker_id, broker_epoch, target): Contacts(heartbeats=several)
        for (broker_id, broker_epoch, target), several in beats.items()
    }


def session_timeouts_ns(node_settings: pa.Table) -> Mapping[str, int]:
    """Return the session time-out that each node keeps, by node, where settings are known."""
    nodes = pc.unique(node_settings["node"]).to_pylist()
    found: dict[str, int | None] = dict.fromkeys(nodes, _DEFAULT_MS)
    stated = node_settings.filter(pc.is_in(node_settings["name"], pa.array(_SETTINGS)))
    for row in stated.to_pylist():
        found[row["node"]] = whole_number(row["value"])
    return {node: one * _NS_A_MILLISECOND for node, one in found.items() if one is not None}
