"""C6 shared-identity: Two live incarnations hold one broker id.

A heartbeat that was passed on after a newer registration of its broker id had been answered, with
the broker epoch of an older one, was answered without an error, by the same controller or by one
whose term had begun behind that registration; where brokers register in ZooKeeper, after a
heartbeat of a newer registration had.

A registration that is answered replaces the one before it, and from then on the controller refuses
the heartbeats of the older broker epoch (STALE_BROKER_EPOCH). The times err on the safe side: the
heartbeat reached the controller later than the proxy, and the registration was decided earlier than
its answer got there. A heartbeat without an answer says nothing.

A controller that is cut off from the quorum may take itself for the active one for some seconds,
and answers a heartbeat by what it knows. So it is held against the controller that had answered the
registration, and against one whose term surely had begun behind the registration's record.

Where brokers register in ZooKeeper, a controller learns of an incarnation later than it is there,
at the latest by a heartbeat of it (MetadataHeartbeat, whose incarnation id stands for the epoch).
So there the first heartbeat of the newer incarnation that the same controller answered without an
error stands for the registration; it has to refuse older ones (INVALID_INCARNATION_ID).

Meaning: The controller takes two processes for one broker; each hides that the other is gone.
Case: an answered heartbeat of an older broker epoch than one that had been given out
Source: KIP-631, "Broker registration"; `ClusterControlManager.checkBrokerEpoch`; the draft
"Controller heartbeats, broker incarnation ids"
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.metadata_heartbeats import METADATA_HEARTBEAT
from fencepost.checkers.metadata.rpcs import Rpc, Rpcs, rpcs
from fencepost.checkers.metadata.sessions import TermsOfNodes
from fencepost.checkers.metadata.view import MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REGISTRATION,
    rests_on=("whole-tape",),
    needs=("wire",),
)
NAME: Final = ENTRY.name


def shared_identities(tables: Tables, seen: MetadataView) -> Judged:
    """Find heartbeats of incarnations that were replaced. Reads `wire` and `metadata_log`."""
    found: dict[str, list[Proof | None]] = {}
    terms = TermsOfNodes(() if seen.log.doubt else seen.terms)
    for broker_id, answer in _judged(streamed(tables, "wire"), terms):
        found.setdefault(f"broker {broker_id}", []).append(answer)
    for key in sorted(found):
        yield key, counted(NAME, key, found[key])


def _judged(wire: Source, terms: TermsOfNodes) -> Iterator[tuple[int, Proof | None]]:
    answered = _answered(wire)
    for heartbeat in rpcs(wire, "BrokerHeartbeat", METADATA_HEARTBEAT):
        if heartbeat.response is None:
            continue
        broker_id = heartbeat.of("broker_id")
        # One that was held on its way reached the controller when it was let go.
        reached_ns, old = heartbeat.reached_ns or heartbeat.asked_ns, heartbeat.of("broker_epoch")
        known = answered.get(broker_id)
        for epoch, registration in known.above(old, before_ns=reached_ns) if known else ():
            if registration.target == heartbeat.target or (
                registration.api != METADATA_HEARTBEAT
                and _has_replayed(terms, heartbeat.target, epoch, reached_ns)
            ):
                yield broker_id, _proof(heartbeat, registration) if heartbeat.ok else None
                break


def _has_replayed(terms: TermsOfNodes, node: str, offset: int, time_ns: int) -> bool:
    """Return whether a controller surely had begun a term behind this metadata offset by then."""
    term = terms.surely_begun(node, time_ns)
    return term is not None and term.begin_offset > offset


class _Answered:
    """The requests of a broker that told its controller an epoch, or were told it, and when."""

    def __init__(self, told: Rpcs) -> None:
        self._told = told
        self._answered_ns = told.answered("time_ns").to_numpy()
        self._epochs = _epochs(told).to_numpy()
        order = np.argsort(self._answered_ns, kind="stable")
        self._in_time = self._answered_ns[order].tolist()
        self._highest = np.maximum.accumulate(self._epochs[order]).tolist()

    def above(self, epoch: int, *, before_ns: int) -> Iterator[tuple[int, Rpc]]:
        """Yield those of a higher epoch that were answered before, each with its epoch."""
        count = bisect_left(self._in_time, before_ns)
        if not count or self._highest[count - 1] <= epoch:
            return  # of nearly every heartbeat, of which there are as many as answers
        higher = (self._answered_ns < before_ns) & (self._epochs > epoch)
        for place in np.flatnonzero(higher).tolist():
            yield int(self._epochs[place]), self._told[place]


def _answered(wire: Source) -> Mapping[int, _Answered]:
    """Return by broker the registrations that were answered, with the epoch that they were given.

    And, where brokers register in ZooKeeper, the heartbeats, with the one that they named.
    """
    told = rpcs(wire, METADATA_HEARTBEAT, "BrokerRegistration")
    told = told.where(told.ok)
    told = told.where(pc.is_valid(_epochs(told)))
    return {broker_id: _Answered(mine) for (broker_id,), mine in told.by("broker_id").items()}


def _epochs(told: Rpcs) -> pa.Array:
    """Return the epochs that heartbeats named and registrations were given."""
    named = pc.equal(told.of("api"), METADATA_HEARTBEAT)
    return pc.if_else(named, told.of("broker_epoch"), told.answered("broker_epoch"))


def _proof(heartbeat: Rpc, registration: Rpc) -> Proof:
    old = heartbeat.of("broker_epoch")
    registered = registration.api != METADATA_HEARTBEAT
    new = registration.answered("broker_epoch") if registered else registration.of("broker_epoch")
    did = "registered that broker with" if registered else "answered one with"
    return Proof.of(
        "{target} answered a heartbeat of broker {broker_id} with broker epoch {old}, "
        "passed on to it at {reached} (frame {heartbeat_frame}), after "
        f"{{registration_target}} had {did} broker epoch {{new}} at "
        "{answered} (frame {frame})",
        values={"old": old, "new": new},
        frames={"frame": registration.frame, "heartbeat_frame": heartbeat.frame},
        times={
            "reached": heartbeat.reached_ns or heartbeat.asked_ns,
            "answered": registration.answered_ns or 0,
        },
        sources={
            "old": "heartbeat_frame",
            "reached": "heartbeat_frame",
            "target": "heartbeat_frame",
        }
        | dict.fromkeys(("new", "answered", "registration_target"), "frame"),
        target=heartbeat.target,
        broker_id=heartbeat.of("broker_id"),
        registration_target=registration.target,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=shared_identities,
        split=Split.BROKERS,
        apis=("BrokerHeartbeat", METADATA_HEARTBEAT, "BrokerRegistration"),
        tables=("wire", "metadata_log"),
    ),
)
