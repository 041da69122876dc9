"""L3 duplicate-id: A broker id was given away while its holder lived.

Another incarnation registered under the id of an unfenced broker that was not leaving, and the
latest that this can have been decided is less than the session time-out after the earliest that the
same controller can have taken the holder's last heartbeat.

A controller refuses a registration (DUPLICATE_BROKER_REGISTRATION) as long as the session of an
unfenced broker of that id lasts, unless it is leaving. The times are bounds that speak for the
controller, as in C8 (`checkers.metadata.sessions`): the latest that the registration can have been
decided, the earliest that the heartbeat can have been taken. C6 judges the heartbeats of the one
before.

Meaning: Two processes take themselves for one broker.
Case: a registration of a broker id whose holder had sent a heartbeat that is on the tape
Source: KIP-631; `ClusterControlManager.registerBroker`, `BrokerHeartbeatManager.hasValidSession`
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.sessions import (
    Contacts,
    Term,
    contacts_of,
    session_timeouts_ns,
    term_at,
)
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REGISTRATION,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire", "node_settings"),
)
NAME: Final = ENTRY.name


def duplicate_ids(tables: Tables, seen: MetadataView) -> Judged:
    """Find registrations over living ones, by broker. Reads metadata_log, wire, node_settings."""
    timeouts_ns = session_timeouts_ns(tables["node_settings"])
    doubt = seen.log.doubt or ("" if timeouts_ns else "the nodes' settings were not recorded")
    if doubt:
        yield from doubtful(NAME, doubt)
        return
    terms, contacts = seen.terms, contacts_of(streamed(tables, "wire"))
    for broker in seen.brokers.values():
        key = f"broker {broker.broker_id}"
        yield key, counted(NAME, key, _judged(broker, terms, contacts, timeouts_ns, seen.facts))


def _judged(
    broker: BrokerHistory,
    terms: Sequence[Term],
    contacts: Mapping[tuple[int, int, str], Contacts],
    timeouts_ns: Mapping[str, int],
    facts: Facts,
) -> Iterator[Proof | None]:
    for before, version in _successions(broker):
        term = term_at(terms, version.metadata_offset)
        if term is None or term.node not in timeouts_ns or not _replaced(before, version):
            continue
        heard = contacts.get((broker.broker_id, before.broker_epoch, term.node))
        latest_ns = facts.latest_ns(version.timestamp_ms)
        if heard is None or heard.asked("shutting_down", from_ns=0, until_ns=latest_ns):
            continue
        last = heard.last_before(facts.earliest_ns(version.timestamp_ms))
        if last is None or last.reached_ns is None or last.reached_ns < term.begin_ns:
            continue
        alive = latest_ns - last.reached_ns < timeouts_ns[term.node]
        yield _proof(broker, before, version, last) if alive else None


def _successions(broker: BrokerHistory) -> Iterator[tuple[BrokerVersion, BrokerVersion]]:
    """Yield each version but the first, with the one before it.

    Or with the one before that, where the decision of a registration first fenced the old one.
    """
    for place, (before, version) in enumerate(pairwise(broker.versions)):
        decided = broker.fenced_by_registration(place) is version
        yield (broker.versions[place - 1] if decided and place else before), version


def _replaced(before: BrokerVersion, version: BrokerVersion) -> bool:
    """Return whether another incarnation took the place of an unfenced one."""
    registered = version.registration_offset == version.metadata_offset
    other = version.incarnation_id != before.incarnation_id
    return registered and other and before.eligible and not version.snapshot


def _proof(
    broker: BrokerHistory, before: BrokerVersion, version: BrokerVersion, last: Rpc
) -> Proof:
    return Proof.of(
        "incarnation {incarnation_id} registered as broker {broker_id} at metadata "
        "offset {metadata_offset} (broker epoch {version_broker_epoch}), while the "
        "session of incarnation {before_incarnation_id} (broker epoch "
        "{broker_epoch}) lasted: {target} accepted its heartbeat of {reached} (frame "
        "{frame})",
        metadata_offsets={
            "registration_offset": before.registration_offset,
            "metadata_offset": version.metadata_offset,
        },
        values={"broker_epoch": before.broker_epoch, "version_broker_epoch": version.broker_epoch},
        frames={"frame": last.frame},
        times={"reached": last.reached_ns or 0},
        sources={"broker_epoch": "registration_offset", "version_broker_epoch": "metadata_offset"}
        | {"incarnation_id": "metadata_offset", "before_incarnation_id": "registration_offset"}
        | {"reached": "frame", "target": "frame"},
        incarnation_id=version.incarnation_id,
        broker_id=broker.broker_id,
        before_incarnation_id=before.incarnation_id,
        target=last.target,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=duplicate_ids,
        split=Split.BROKERS,
        apis=("BrokerHeartbeat",),
    ),
)
