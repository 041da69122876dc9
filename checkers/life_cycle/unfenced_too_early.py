"""L8 unfenced-too-early: A broker was unfenced before it had applied its own registration.

The metadata log unfences a broker, and by the latest that this can have been written, no heartbeat
of its registration had been passed on that says it has applied the offset of that registration.
Where brokers register in ZooKeeper: the controller in office told a new incarnation that it is
active before that had answered an UpdateMetadata of it.

A broker tells by its heartbeats up to which metadata offset it has applied the log, and is unfenced
by one that says at least the offset of its registration record: from then on it serves clients, and
what it serves is no older than its own start. The record that unfences it stands in the metadata
log, and the answer to a heartbeat says so, too.

These times err on the side of no accusation: a heartbeat counts from when it was passed on,
answered or not, an answer from when it arrived at the proxy, and the record as late as its
controller's clock allows. Not judged are registrations of which no heartbeat is on the tape at all,
those that share their epoch with another one, and those that are known from a snapshot alone.

Where brokers register in ZooKeeper and send MetadataHeartbeats, there is no log to apply. There the
controller tells a broker with a new incarnation id all that it must know (LeaderAndIsr,
UpdateMetadata), and the broker is active once it has taken that. Judged are registrations made
while that controller was in office; what a controller says to itself may be on no link, and is left
out.

Meaning: A broker serves clients, and may lead, by metadata from before its own start.
Case: an unfencing, or the first answer that calls an incarnation active, of a registration of which
a heartbeat is on the tape
Source: KIP-631, "Broker state machine"; `BrokerHeartbeatManager.calculateNextBrokerState`; for
brokers on ZooKeeper a rule of the reference cluster, since the draft "Controller heartbeats, broker
incarnation ids" leaves it open
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.metadata_heartbeats import METADATA_HEARTBEAT, heartbeats_of
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.sessions import term_at
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name

Heartbeats = Mapping[tuple[int, int], Sequence[Rpc]]
"""The heartbeats by (broker id, broker epoch), in the order in which they were passed on."""


def unfenced_too_early(tables: Tables, seen: MetadataView) -> Judged:
    """Find unfencings of brokers that lag, by broker. Reads `metadata_log` and `wire`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    wire = streamed(tables, "wire")
    heartbeats = heartbeats_by_registration(wire)
    activated = _activations(wire, seen) if seen.facts.on_zookeeper else {}
    for broker in seen.brokers.values():
        key = f"broker {broker.broker_id}"
        untold = activated.get(broker.broker_id, ())
        yield key, counted(NAME, key, chain(_judged(broker, heartbeats, seen), untold))


def heartbeats_by_registration(wire: Source) -> Heartbeats:
    """Return the heartbeats that say what their brokers have applied."""
    beats = rpcs(wire, "BrokerHeartbeat").taken()
    applied = beats.where(pc.is_valid(beats.of("fetch_offset")))
    return {
        (broker_id, broker_epoch): several
        for (broker_id, broker_epoch), several in applied.by("broker_id", "broker_epoch").items()
    }


def _activations(wire: Source, seen: MetadataView) -> Mapping[int, Sequence[Proof | None]]:
    """Judge, by broker id, the first answers that call new incarnations active, on ZooKeeper."""
    terms = seen.terms
    told: dict[tuple[str, str, int], list[Rpc]] = {}
    for rpc in rpcs(wire, "UpdateMetadata"):
        if rpc.of("item") == 0 and rpc.ok and rpc.of("broker_epoch") is not None:
            told.setdefault((rpc.source, rpc.target, rpc.of("broker_epoch")), []).append(rpc)
    found: dict[int, list[Proof | None]] = {}
    for broker_id, heartbeats in heartbeats_of(wire).items():
        judged: set[int] = set()
        active = heartbeats.where(heartbeats.ok)
        active = active.where(pc.invert(active.answered("fenced")))
        for rpc in active.sorted_by(active.answered("time_ns").to_numpy()):
            incarnation = rpc.of("broker_epoch")
            if incarnation in judged:
                continue
            judged.add(incarnation)
            term = term_at(terms, incarnation)
            if term is None or term.node != rpc.target or rpc.source == rpc.target:
                continue
            if seen.broker_before(broker_id, incarnation + 1) is None:
                continue
            taken = told.get((rpc.target, rpc.source, incarnation), ())
            found.setdefault(broker_id, []).append(_untold(rpc, taken))
    return found


def _untold(rpc: Rpc, taken: Sequence[Rpc]) -> Proof | None:
    assert rpc.answered_ns is not None
    if any(one.answered_ns is not None and one.answered_ns <= rpc.answered_ns for one in taken):
        return None
    return Proof.of(
        "{target} told broker {broker_id} at {answered} (frame {answer_frame}) that incarnation "
        "{incarnation} of it, which registered at metadata offset {metadata_offset}, is active; "
        "that incarnation had answered no UpdateMetadata of {target} before",
        metadata_offsets={"metadata_offset": rpc.of("broker_epoch")},
        frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
        values={"incarnation": rpc.of("broker_epoch")},
        times={"answered": rpc.answered_ns},
        sources={"incarnation": "frame", "broker_id": "frame", "answered": "answer_frame"},
        target=rpc.target,
        broker_id=rpc.of("broker_id"),
    )


def _judged(
    broker: BrokerHistory, heartbeats: Heartbeats, seen: MetadataView
) -> Iterator[Proof | None]:
    for before, version in pairwise(broker.versions):
        # An incarnation that amends its registration keeps its epoch: its heartbeats are mixed.
        is_own = before.registration_offset == version.registration_offset == version.broker_epoch
        if before.fenced and not version.fenced and is_own and not before.snapshot:
            told = heartbeats.get((broker.broker_id, version.broker_epoch), ())
            if told:
                yield _proof(broker.broker_id, version, told, seen)


def _proof(
    broker_id: int, version: BrokerVersion, told: Sequence[Rpc], seen: MetadataView
) -> Proof | None:
    by_ns = min(seen.facts.latest_ns(version.timestamp_ms), _told_so_ns(told))
    before = [one for one in told if (one.reached_ns or 0) <= by_ns]
    needed = version.registration_offset
    if any(one.of("fetch_offset") >= needed for one in before):
        return None
    first = next((one for one in told if one.of("fetch_offset") >= needed), None)
    last = before[-1] if before else None
    said = "no heartbeat of that registration had been passed on"
    if last is not None:
        said = (
            "its last heartbeat until then said that it had applied {applied} (passed on to "
            "{target} at {reached}, frame {frame})"
        )
    later = "none said {needed} or more afterwards"
    if first is not None:
        later = (
            "the first one that said {needed} or more was passed on at {first} "
            "(frame {first_frame})"
        )
    return Proof.of(
        "broker {broker_id} was unfenced at metadata offset {metadata_offset}, by "
        f"{{by}}; {said}, which is before its own registration at metadata offset "
        f"{{needed}}, and {later}",
        metadata_offsets={"metadata_offset": version.metadata_offset, "needed": needed},
        values={
            "applied": last.of("fetch_offset") if last else None,
            "first_applied": first.of("fetch_offset") if first else None,
        },
        frames={
            "frame": last.frame if last else None,
            "first_frame": first.frame if first else None,
        },
        times={
            "by": by_ns,
            "reached": last.reached_ns or 0 if last else None,
            "first": first.reached_ns or 0 if first else None,
        },
        sources=dict.fromkeys(("applied", "target", "reached"), "frame")
        | dict.fromkeys(("first", "first_applied"), "first_frame"),
        broker_id=broker_id,
        **({} if last is None else dict[str, Any](target=last.target)),
    )


def _told_so_ns(told: Sequence[Rpc]) -> int:
    """Return when a controller first called this registration unfenced; OPEN_NS if none did."""
    answers = (one.answered_ns for one in told if one.ok and one.answered("fenced") is False)
    return min((time_ns for time_ns in answers if time_ns is not None), default=OPEN_NS)


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unfenced_too_early,
        split=Split.BROKERS,
        apis=("BrokerHeartbeat", METADATA_HEARTBEAT, "UpdateMetadata"),
    ),
)
