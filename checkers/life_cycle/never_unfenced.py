"""L14 never-unfenced: A broker that has caught up is not unfenced.

A registration stays fenced for longer than 10 s after a heartbeat was answered without an error
that says it has applied the offset of its registration, asks neither to remain fenced nor to shut
down, and is followed by others that ask for nothing else; and no fault is in effect that the broker
or who decides may depend on.

A broker is unfenced by the heartbeat that says that it has applied its own registration, unless it
asks to remain fenced or to shut down. The controller needs nothing else to decide it.

Judged are registrations that began fenced and of which such a heartbeat is on the tape. Where
brokers register in ZooKeeper, none is ever fenced by the log. `checkers.metadata.absences` says
which faults a broker, or who decides, may depend on.

Meaning: A broker runs, and leads and serves nothing.
Case: a registration of which such a heartbeat is on the tape
Source: KIP-631, "Broker state machine"; `BrokerHeartbeatManager.calculateNextBrokerState`
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.life_cycle.unfenced_too_early import Heartbeats, heartbeats_by_registration
from fencepost.checkers.metadata.absences import Calm, calm_of
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.spans import FOREVER_NS, Span, common
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.STANDSTILL,
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name
UNFENCED_NS: Final = 10_000_000_000
"""Many times what lies between two heartbeats."""


def never_unfenced(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every registration, by broker. Reads `metadata_log`, `wire` and `faults`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    when = calm_of(tables, seen)
    heartbeats = heartbeats_by_registration(streamed(tables, "wire"))
    for broker in seen.brokers.values():
        key = f"broker {broker.broker_id}"
        yield key, counted(NAME, key, _judged(broker, heartbeats, when))


def _judged(broker: BrokerHistory, heartbeats: Heartbeats, when: Calm) -> Iterator[Proof | None]:
    for version, until_ns in _fenced(broker, when.facts):
        told = heartbeats.get((broker.broker_id, version.broker_epoch), ())
        asked = [one for one in told if one.ok and one.of("fetch_offset") >= version.broker_epoch]
        asked = [one for one in asked if not _asks_otherwise(one)]
        if asked:
            later = (one.asked_ns for one in told if _asks_otherwise(one))
            waited = Span(
                from_ns=asked[0].answered_ns or 0,
                until_ns=min(until_ns, asked[-1].asked_ns, *later),
            )
            spans = common([waited], when.acting(broker.broker_id))
            longest = max(spans, key=lambda one: one.length_ns, default=waited)
            late = longest.length_ns > UNFENCED_NS
            yield _proof(broker.broker_id, version, asked[0], longest) if late else None


def _fenced(broker: BrokerHistory, facts: Facts) -> Iterator[tuple[BrokerVersion, int]]:
    """Yield the registrations that began fenced, each with the time until which it surely was."""
    for version, following in pairwise((*broker.versions, None)):
        assert version is not None
        begins = version.registration_offset == version.metadata_offset == version.broker_epoch
        if begins and version.fenced and not version.snapshot:
            until_ns = FOREVER_NS
            if following is not None:
                until_ns = facts.earliest_ns(following.timestamp_ms)
            yield version, until_ns


def _asks_otherwise(heartbeat: Rpc) -> bool:
    """Return whether a broker asks to remain fenced or to shut down."""
    return bool(heartbeat.of("fenced") or heartbeat.of("shutting_down"))


def _proof(broker_id: int, version: BrokerVersion, first: Rpc, waited: Span) -> Proof:
    return Proof.of(
        "broker {broker_id} registered at metadata offset {metadata_offset}, said to {target} at "
        "{asked} (frame {frame}) that it had applied offset {applied}, and is still fenced from "
        "{since} until {until}, a time in which it went on asking and nothing was broken that "
        "this depends on; the bound is {bound}",
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"applied": first.of("fetch_offset")},
        frames={"frame": first.frame},
        times={"asked": first.asked_ns, "since": waited.from_ns, "until": waited.until_ns},
        durations={"bound": UNFENCED_NS},
        sources=dict.fromkeys(("applied", "asked", "target"), "frame"),
        broker_id=broker_id,
        target=first.target,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=never_unfenced,
        split=Split.BROKERS,
        apis=("BrokerHeartbeat",),
        tables=("metadata_log", "wire", "faults"),
    ),
)
