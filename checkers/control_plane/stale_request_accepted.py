"""C17 stale-request-accepted: A broker carried out a controller's request that is out of date.

A LeaderAndIsr, StopReplica or UpdateMetadata with a controller epoch below one that the broker had
answered before, or had sent 2 s before as a controller, or with a broker epoch below that of its
registration, was not answered STALE_CONTROLLER_EPOCH or STALE_BROKER_EPOCH.

Where ZooKeeper has the metadata, the controller tells brokers what they lead and follow
(LeaderAndIsr), what to stop (StopReplica) and what to show (UpdateMetadata). A request that was
long on its way must do nothing any more:

- one with a controller epoch below that of a request which the broker had answered before
  (STALE_CONTROLLER_EPOCH). A broker that restarted has no memory of the other request, so both must
  lie between two registrations of the broker. What a controller sends to its own broker crosses no
  link: there a request of its own counts that it had sent to another broker `LEARNT_NS` before;
- one with another broker epoch than the registration that it has (STALE_BROKER_EPOCH, KIP-380), if
  that had been made `LEARNT_NS` before the request was passed on: a broker learns its epoch from
  ZooKeeper's answer. Requests of older versions name no broker epoch.

A request with an answer that has another error was looked at, and not refused as it had to be.

Meaning: A broker carries out now a decision of long ago.
Case: a request that is out of date by a controller epoch, or one that names a broker epoch
Source: KIP-380; `ReplicaManager.becomeLeaderOrFollower`, `KafkaApis.isBrokerEpochStale`
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerVersion
from fencepost.checkers.metadata.rpcs import Rpc, in_turn, rpcs
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.quiet import CONTROLLER_REQUESTS
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.standstills import Standstills
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    culprit=("controller→broker",),
    variants={
        "it has controller epoch": "older-controller-epoch",
        "it is for broker epoch": "older-broker-epoch",
    },
    needs=("wire", "metadata_log", "transaction_log"),
)
NAME: Final = ENTRY.name
LEARNT_NS: Final = 2_000_000_000
_OLD_CONTROLLER: Final = "STALE_CONTROLLER_EPOCH"
_OLD_BROKER: Final = "STALE_BROKER_EPOCH"


def stale_requests_accepted(tables: Tables, seen: MetadataView) -> Judged:
    """Find them, by broker. Reads `wire` and `metadata_log`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    registrations = _registrations(seen)
    still = Standstills.of(tables.get("faults"))
    for node in sorted(seen.facts.brokers):
        of_node = list(rpcs(_told(streamed(tables, "wire"), node), *CONTROLLER_REQUESTS))
        requests = [
            rpc
            for rpc in of_node
            if rpc.target == node and rpc.reached_ns is not None and rpc.response is not None
        ]
        if requests:
            mine = registrations.get(seen.facts.node_ids.get(node, -1), ())
            own = [rpc for rpc in of_node if rpc.source == node]
            yield node, counted(NAME, node, _judged(requests, own, mine, seen.facts, still))


def _told(wire: Source, node: str) -> Source:
    """Return the first items of what a node asks and is asked, 90,000 a night, and the answers."""

    def batches(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in wire(columns):
            first = pc.equal(batch.column("item"), 0)
            wanted = pc.or_(first, pc.not_equal(batch.column("direction"), "request"))
            mine = (pc.equal(batch.column(end), node) for end in ("source", "target"))
            yield batch.filter(pc.and_(pc.or_(*mine), wanted))

    return batches


def _registrations(seen: MetadataView) -> Mapping[int, Sequence[BrokerVersion]]:
    return {one.broker_id: tuple(one.registrations()) for one in seen.brokers.values()}


def _judged(
    requests: Sequence[Rpc],
    own: Sequence[Rpc],
    registrations: Sequence[BrokerVersion],
    facts: Facts,
    still: Standstills,
) -> Iterator[Proof | None]:
    """Judge the requests to a broker, in the order in which they reached it.

    `own`: those that it sent as a controller.
    """
    learnt = Learnt(registrations, facts, still)
    sent = {_epoch(one): one for one in sorted(own, key=lambda one: -one.asked_ns)}
    newest: Rpc | None = None
    for rpc, answered in in_turn(requests):
        for done in answered:
            newest = done if newest is None or _epoch(done) >= _epoch(newest) else newest
        refused = rpc.error in (_OLD_CONTROLLER, _OLD_BROKER)
        known_from = (newest, *(one for one in sent.values() if _acted_on(one, rpc, still)))
        befores = (_before(one, rpc, registrations, facts) for one in known_from)
        before = next(filter(None, befores), None)
        if before is not None:
            yield None if refused else _of_controller(rpc, before)
        known = learnt.known(rpc)
        if known is not None and rpc.of("broker_epoch") is not None and rpc.of("broker_epoch") >= 0:
            is_its = rpc.of("broker_epoch") >= known.broker_epoch
            yield None if is_its or refused else _of_broker(rpc, known)


def _epoch(rpc: Rpc) -> int:
    found = rpc.of("controller_epoch")
    return -1 if found is None else int(found)


def _before(
    newest: Rpc | None, rpc: Rpc, registrations: Sequence[BrokerVersion], facts: Facts
) -> Rpc | None:
    """Return the request of a later controller that the same process knew of before.

    `newest`: of those that the broker had answered by then, or one that it had sent.
    """
    if newest is None or not 0 <= _epoch(rpc) < _epoch(newest):
        return None
    assert rpc.reached_ns is not None
    restarted = any(
        facts.latest_ns(one.timestamp_ms) >= (newest.reached_ns or 0)
        and facts.earliest_ns(one.timestamp_ms) <= (rpc.answered_ns or rpc.reached_ns)
        for one in registrations
    )
    return None if restarted else newest


def _acted_on(own: Rpc, rpc: Rpc, still: Standstills) -> bool:
    """Return whether a broker had time to tell itself what it had sent as a controller."""
    until_ns = rpc.reached_ns or 0
    return still.acted_ns(own.asked_ns, until_ns, node=rpc.target, hears_from=()) > LEARNT_NS


class Learnt:
    """The knowledge that a broker has of its registrations, which are in the order of the log."""

    def __init__(
        self, registrations: Sequence[BrokerVersion], facts: Facts, still: Standstills
    ) -> None:
        self._registrations, self._still = registrations, still
        self._hears_from = facts.controllers
        made_ns = [facts.latest_ns(one.timestamp_ms) for one in registrations]
        self._made_ns = made_ns
        self._earliest_ns = list(accumulate(reversed(made_ns), min))[::-1]
        """Of each and those after it, when the first had been made at the latest; ascending."""

    def known(self, rpc: Rpc) -> BrokerVersion | None:
        """Return the last registration that the broker surely knew when the request came."""
        assert rpc.reached_ns is not None
        place = bisect_left(self._earliest_ns, rpc.reached_ns - LEARNT_NS) - 1
        while place >= 0:
            acted_ns = self._still.acted_ns(
                self._made_ns[place], rpc.reached_ns, node=rpc.target, hears_from=self._hears_from
            )
            if acted_ns > LEARNT_NS:
                return self._registrations[place]
            place -= 1
        return None


def _of_controller(rpc: Rpc, before: Rpc) -> Proof:
    is_own = before.source == rpc.target
    known = "{target} had sent one with controller epoch {newer} itself at {sent}"
    if not is_own:
        known = "one with controller epoch {newer} had been answered at {answered}"
    at = {"sent": before.asked_ns} if is_own else {"answered": before.answered_ns}
    return Proof.of(
        "{target} answered the {api} of {source}, passed on at {reached} (frame {frame}), with "
        f"{{error}}: it has controller epoch {{epoch}}, and {known} (frame {{before}})",
        frames={"frame": rpc.frame, "before": before.frame},
        values={"epoch": _epoch(rpc), "newer": _epoch(before)},
        times={"reached": rpc.reached_ns, **at},
        sources=dict.fromkeys(("epoch", "reached", "api"), "frame")
        | dict.fromkeys(("newer", *at), "before"),
        target=rpc.target,
        api=rpc.api,
        source=rpc.source,
        error=rpc.error,
    )


def _of_broker(rpc: Rpc, known: BrokerVersion) -> Proof:
    return Proof.of(
        "{target} answered the {api} of {source}, passed on at {reached} (frame {frame}), with "
        "{error}: it is for broker epoch {epoch}, and the broker had registered with {registered} "
        "at metadata offset {metadata_offset}",
        metadata_offsets={"metadata_offset": known.registration_offset},
        frames={"frame": rpc.frame},
        values={"epoch": rpc.of("broker_epoch"), "registered": known.broker_epoch},
        times={"reached": rpc.reached_ns},
        sources=dict.fromkeys(("epoch", "reached", "api"), "frame")
        | {"registered": "metadata_offset"},
        target=rpc.target,
        api=rpc.api,
        source=rpc.source,
        error=rpc.error,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stale_requests_accepted,
        apis=CONTROLLER_REQUESTS,
        tables=("wire", "metadata_log", "faults"),
    ),
)
