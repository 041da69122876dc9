"""L5 served-while-fenced: A broker that may not serve answered a client.

A broker answered a read of metadata, a Produce or a Fetch that was called after its lease, counted
from when it sent what was answered last, had ended, or after it had been told that it is fenced;
and since then it had answered another one before.

A registration is a lease, and a broker that keeps to it counts the lease from when it *sent* the
heartbeat or registration that was answered. When it is over, or when the controller has told the
broker that it is fenced, it answers no client. Two kinds of request tell which broker answered:
reads of metadata (`describes`), and, where clients' links are on the tape, Produces and Fetches
(`checkers.metadata.client_answers`), of which it has enough to show who serves for half a second.
Their call is their arrival at the proxy, and so is their return. One that a broker refuses is not
answered. An answer is accused only if this is certain:

- Over: whatever heartbeat or registration of that broker had been answered to it before the request
  returned had arrived at the proxy, so had been sent, more than the lease before the request was
  called. The longest lease of any node counts. What was never answered renews nothing.
- Or fenced: the answer to the newest heartbeat that had been answered to it before the request
  returned said that it is fenced, and had been passed on to it before the request was called. A
  broker takes no answer to an older one into account.
- It had looked at its clock: another request that was called after that moment had been answered
  before this one was called. A process that is stopped between looking at its clock and answering
  what came meanwhile does so once, in the step in which it wakes up, and no rule can prevent it.

All with a slack for ticks, clocks that drift, and answers on their way.

Where brokers register in ZooKeeper and send MetadataHeartbeats, the broker-side time-out is the
lease: without an answer for that long a broker fences itself. There a controller is a broker, too,
and what it says to itself may be on no link. So once a broker was elected, its lease is known again
from the first answer to what it sent to another one after its own office was over. A broker that
has registered as legacy at any time sends no heartbeats then, and is not judged.

A release of Kafka has no such lease: its broker learns from the metadata log that it was fenced,
and may serve until then. There, what is found is told and allowed.

Meaning: A client is shown metadata, reads or writes through a broker that the cluster does without.
Allowed if: brokers do not end their own leases, as those of no release of Kafka do: they learn from
the metadata log that they are fenced, and may serve until then
Case: a read of metadata, or a request of data that is on the tape, which a broker answered whose
lease is on the tape
Source: KIP-631 as it was first written, "Broker leases"; the draft "Controller heartbeats, broker
incarnation ids", "Broker-Side Heartbeat Timeout"
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.client_answers import DATA_APIS, answered_data
from fencepost.checkers.metadata.metadata_heartbeats import (
    BROKER_SIDE,
    LEGACY,
    METADATA_HEARTBEAT,
    timeouts_ms,
)
from fencepost.checkers.metadata.rpcs import Rpc, Rpcs, rpcs
from fencepost.checkers.metadata.sessions import session_timeouts_ns
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.NODE,
    promise="leases",
    rests_on=("whole-tape",),
    needs=("describes", "wire", "node_settings"),
)
NAME: Final = ENTRY.name

_SLACK_NS: Final = 250_000_000
_DRIFT_SHARE: Final = 100
"""The divisor of a lease that gives how far a broker's clock may run behind."""
_NS_A_MILLISECOND: Final = 1_000_000
_HEARTBEATS: Final = ("BrokerHeartbeat", METADATA_HEARTBEAT)
_ANSWERS: Final = ("NONE", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE")
"""The answers by which a broker shows its metadata; other errors may be the client's own."""


class _Answer(NamedTuple):
    """A request of a client that a broker answered."""

    call_ns: int
    return_ns: int
    read: int
    """The number of the read of metadata; -1 for a request of data."""
    frame: int
    """The frame of the request of data; -1 for a read of metadata."""


_READ_COLUMNS: Final = ("call_ns", "return_ns", "read")
"""The columns of `describes` of which the answer to a read is made."""
_NOTHING: Final = -1
_NO_ANSWERS: Final = np.empty((0, len(_Answer._fields)), np.int64)
_ANSWERS_AT_ONCE: Final = 1 << 14


class _Office(NamedTuple):
    """A time in which a broker was the controller; both ends are beyond the true ones."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The time from when on a broker may not serve, and the place of what says so."""

    time_ns: int
    place: int
    rule: str
    """Its evidence, as the end of a rule; names facts of the request."""
    over_ns: int | None = None
    """The end of its lease; None if it is known to be fenced."""


def served_while_fenced(tables: Tables, seen: MetadataView) -> Judged:
    """Find requests of clients that a fenced broker answered, by broker.

    Reads `describes`, `wire`, `node_settings` and, on ZooKeeper, `metadata_log`.
    """
    timeouts_ns = _leases_ns(tables["node_settings"])
    contacts = _contacts(streamed(tables, "wire"))
    if not timeouts_ns:
        yield from doubtful(NAME, "no settings are known")
        return
    if contacts and seen.facts.on_zookeeper and seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    lease_ns = max(timeouts_ns.values())
    offices, legacy = _offices(seen), _legacy(seen)
    answered = _answers(streamed(tables, "describes"), streamed(tables, "wire"))
    for node in sorted(contacts.keys() - legacy):
        leases = _Leases(contacts[node], lease_ns, offices.get(node, ()))
        judged = _judged(node, _each(answered.get(node, _NO_ANSWERS)), leases)
        yield node, counted(NAME, node, judged, allowed=not seen.facts.leases)


def _leases_ns(node_settings: pa.Table) -> Mapping[str, int]:
    """Return the time-out after which each node fences itself, or is fenced."""
    own_ms = timeouts_ms(node_settings, BROKER_SIDE)
    own_ns = {node: timeout_ms * _NS_A_MILLISECOND for node, timeout_ms in own_ms.items()}
    return own_ns or session_timeouts_ns(node_settings)


def _answers(describes: Source, wire: Source) -> Mapping[str, NDArray[np.int64]]:
    """Return what each broker answered to clients, a row of `_Answer` each, in their order."""
    found: dict[str, list[NDArray[np.int64]]] = {}
    for batch in describes(("node", "error", *_READ_COLUMNS)):
        shown = batch.filter(pc.is_in(batch.column("error"), pa.array(_ANSWERS)))
        for node in pc.unique(shown.column("node")).to_pylist():
            mine = shown.filter(pc.equal(shown.column("node"), node))
            rows = [mine.column(name).to_numpy() for name in _READ_COLUMNS]
            no_frame = np.full(len(mine), _NOTHING)
            found.setdefault(node, []).append(np.unique(np.column_stack([*rows, no_frame]), axis=0))
    for node, of_data in answered_data(wire).items():
        no_read = np.full(len(of_data), _NOTHING)
        found.setdefault(node, []).append(np.insert(of_data, 2, no_read, axis=1))
    return {node: np.unique(np.concatenate(rows), axis=0) for node, rows in found.items()}


def _each(answers: NDArray[np.int64]) -> Iterator[_Answer]:
    """Yield them one by one: a night has a million, and a row is small."""
    for first in range(0, len(answers), _ANSWERS_AT_ONCE):
        yield from map(_Answer._make, answers[first : first + _ANSWERS_AT_ONCE].tolist())


def _contacts(wire: Source) -> Mapping[str, Rpcs]:
    """Return each broker's answers without an error, in the order in which they were passed on."""
    asked = rpcs(wire, *_HEARTBEATS, "BrokerRegistration")
    answered = asked.where(asked.ok)
    returned = answered.where(pc.is_valid(answered.answered("forwarded_ns")))
    in_turn = returned.sorted_by(returned.answered("forwarded_ns").to_numpy())
    return {node: mine for (node,), mine in in_turn.by("source").items()}


def _offices(seen: MetadataView) -> Mapping[str, Sequence[_Office]]:
    """Return the offices of each broker as the controller, in order; none but on ZooKeeper."""
    found: dict[str, list[_Office]] = {}
    if seen.facts.on_zookeeper and not seen.log.doubt:
        terms = seen.terms
        ends_ns = [*(term.begin_ns for term in terms[1:]), OPEN_NS]
        for term, end_ns in zip(terms, ends_ns, strict=True):
            found.setdefault(term.node, []).append(_Office(term.begin_earliest_ns, end_ns))
    return found


def _legacy(seen: MetadataView) -> Collection[str]:
    """Return the brokers that have registered as legacy, which is in ZooKeeper."""
    if not (seen.facts.on_zookeeper or seen.facts.migrating):
        return ()
    nodes = seen.facts.nodes()
    return {
        nodes.get(one.broker_id, "")
        for one in seen.log.records
        if one.type == "BrokerInfoRecord" and one.value == LEGACY and one.broker_id is not None
    }


class _Leases:
    """The leases of one broker, out of what it was answered."""

    def __init__(self, contacts: Rpcs, lease_ns: int, offices: Sequence[_Office]) -> None:
        self._contacts, self._lease_ns, self._offices = contacts, lease_ns, offices
        asked_ns = contacts.asked_ns
        returned_ns = contacts.answered("forwarded_ns").to_numpy()
        is_beat = pc.is_in(contacts.of("api"), pa.array(_HEARTBEATS)).to_numpy(zero_copy_only=False)
        to_itself = pc.equal(contacts.of("source"), contacts.of("target"))
        self._asked_ns, self._returned_ns = asked_ns.tolist(), returned_ns.tolist()
        self._to_itself = to_itself.to_numpy(zero_copy_only=False)
        self._newest = _last_asked(asked_ns, np.ones(len(asked_ns), dtype=np.bool_))
        """The newest contact by place: of those up to it, the one that was asked last."""
        self._newest_beats = _last_asked(asked_ns, is_beat)
        """The newest heartbeat by place; -1 without one."""
        self._fenced = _told_fenced(contacts)

    def is_known(self, answer: _Answer) -> bool:
        """Return whether it is known what had been answered to the broker when it answered."""
        known = bisect_left(self._returned_ns, answer.return_ns)
        if not known:
            return False
        held = [one for one in self._offices if one.begin_ns < answer.return_ns]
        newest = self._newest[known - 1]
        return not held or self._to_itself[newest] or self._asked_ns[newest] > held[-1].end_ns

    def end_for(self, answer: _Answer) -> _End | None:
        """Return when the right to serve had surely ended before the call of this, or None."""
        known = bisect_left(self._returned_ns, answer.return_ns)
        if not known:
            return None
        ends = (self._over(self._newest[known - 1]), self._told(self._newest_beats[known - 1]))
        past = [end for end in ends if end is not None and end.time_ns < answer.call_ns]
        return min(past, key=lambda end: end.time_ns, default=None)

    def contact(self, end: _End) -> Rpc:
        """Return the request whose answer says so."""
        return self._contacts[end.place]

    def _over(self, newest: int) -> _End:
        over_ns = self._asked_ns[newest] + self._lease_ns
        return _End(
            time_ns=over_ns + self._lease_ns // _DRIFT_SHARE + _SLACK_NS,
            place=newest,
            rule="had a lease until {over} at most, by what it sent last of all that was answered "
            "({api} of {asked}, frame {frame})",
            over_ns=over_ns,
        )

    def _told(self, beat: int) -> _End | None:
        if beat < 0 or not self._fenced[beat]:
            return None
        return _End(
            time_ns=self._returned_ns[beat] + _SLACK_NS,
            place=beat,
            rule="had been told by {target} at {told} that it is fenced (frame {answer_frame})",
        )


def _last_asked(asked_ns: NDArray[np.int64], among: NDArray[np.bool_]) -> list[int]:
    """Return by place which of those up to it was asked last; -1 without any."""
    times = np.where(among, asked_ns, -1)
    is_new = among & (times >= np.maximum.accumulate(times))
    last: list[int] = np.maximum.accumulate(np.where(is_new, np.arange(len(times)), -1)).tolist()
    return last


def _told_fenced(contacts: Rpcs) -> NDArray[np.bool_]:
    """Return which answers say that the broker is fenced, and do not let it go."""
    fenced, leaves = (
        pc.fill_null(contacts.answered(name), fill_value=False).to_numpy(zero_copy_only=False)
        for name in ("fenced", "shutting_down")
    )
    told: NDArray[np.bool_] = fenced & ~leaves
    return told


def _judged(node: str, answers: Iterable[_Answer], leases: _Leases) -> Iterator[Proof | None]:
    """Judge each answer of which it is known how long the broker might serve."""
    awake_ns: dict[int, int] = {}
    for answer in filter(leases.is_known, answers):
        end = leases.end_for(answer)
        if end is None:
            yield None
            continue
        again = awake_ns.get(end.time_ns, answer.call_ns) < answer.call_ns
        yield _proof(node, answer, end, leases.contact(end)) if again else None
        returned_ns = awake_ns.get(end.time_ns, answer.return_ns)
        awake_ns[end.time_ns] = min(answer.return_ns, returned_ns)


def _proof(node: str, answer: _Answer, end: _End, contact: Rpc) -> Proof:
    leased = end.over_ns is not None
    of_rpc: dict[str, Any] = {"api": contact.api} if leased else {"target": contact.target}
    of_data = answer.frame != _NOTHING
    words = "a client's request of data (frame {data_frame})" if of_data else "read {read}"
    return Proof.of(
        f"{{node}} answered {words}, called at {{call}}, at {{return_}}; it " + end.rule,
        values={} if of_data else {"read": answer.read},
        frames={"frame": contact.frame, "answer_frame": contact.answer_frame}
        | ({"data_frame": answer.frame} if of_data else {}),
        times={
            "call": answer.call_ns,
            "return_": answer.return_ns,
            "asked": contact.asked_ns if leased else None,
            "told": None if leased else contact.returned_ns,
            "over": end.over_ns,
        },
        sources={"asked": "frame", "api": "frame", "told": "answer_frame"}
        | ({"call": "data_frame"} if of_data else {}),
        node=node,
        **of_rpc,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=served_while_fenced,
        split=Split.BROKERS,
        apis=(*_HEARTBEATS, "BrokerRegistration", *DATA_APIS),
        tables=("describes", "wire", "node_settings", "metadata_log"),
    ),
)
