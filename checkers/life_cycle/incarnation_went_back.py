"""L7 incarnation-went-back: an incarnation takes the place of one that came after it.

Each process start of a broker has an incarnation id of its own. It may register several times in a
row (4.x amends a registration that way), but once another incarnation holds the id, it is dead or
must learn that it is no longer meant: a registration of it that is accepted then comes from the
past, as one that lay in the network does.

It may as well lie there before it was ever accepted: the process died, the next one registered, and
the request arrives when the session of that one is over. Nothing in a registration says how old it
is. The tape tells: the request that was accepted later had arrived at the proxy earlier than the
one that had been accepted before it.

Exact: the log of record has the registrations in the order in which they were decided, and a
request is known by the broker epoch that its answer gave it.

Source: KIP-631, "Incarnation id"; `ClusterControlManager.registerBroker`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from checkers.entry import CatalogueEntry
from checkers.facts import Judged, Tables
from checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from checkers.metadata.rpcs import Rpc, accepted_registrations
from checkers.metadata.view import MetadataView, counted, doubtful
from checkers.proof import Proof
from checkers.slices import Split
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "NAME", "incarnations_that_went_back"]

NAME: Final = "incarnation-went-back"


_Accepted = Mapping[tuple[int, int], Rpc]
"""The requests by which brokers registered, by (broker id, broker epoch)."""


def incarnations_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Find registrations out of the past, by broker. Reads `metadata_log` and `wire`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    accepted = accepted_registrations(tables["wire"])
    for broker in seen.brokers.values():
        key = f"broker {broker.broker_id}"
        yield key, counted(NAME, key, _judged(broker, accepted))


def _judged(broker: BrokerHistory, accepted: _Accepted) -> Iterator[Proof | None]:
    replaced: dict[str, BrokerVersion] = {}
    holder: BrokerVersion | None = None
    for version in broker.registrations():
        if version.incarnation_id is None:
            continue
        late = None
        if holder is not None and holder.incarnation_id != version.incarnation_id:
            assert holder.incarnation_id is not None
            replaced[holder.incarnation_id] = version
            late = _overtaken(broker, version, holder, accepted)
        if holder is not None:
            by = replaced.get(version.incarnation_id)
            yield late if by is None else _proof(broker, version, by)
        holder = version


def _overtaken(
    broker: BrokerHistory, version: BrokerVersion, holder: BrokerVersion, accepted: _Accepted
) -> Proof | None:
    """Return the proof that the request for a registration is older than that which it replaced."""
    mine = accepted.get((broker.broker_id, version.broker_epoch))
    before = accepted.get((broker.broker_id, holder.broker_epoch))
    if mine is None or before is None or mine.asked_ns >= before.asked_ns:
        return None
    return Proof.of(
        "incarnation {incarnation_id} registered as broker {broker_id} at metadata offset "
        "{version_metadata_offset} by a request sent at {asked} (frame {frame}), and took the "
        "place of incarnation {by_incarnation_id}, which had registered at metadata offset "
        "{metadata_offset} by one sent later, at {before_asked} (frame {before_frame})",
        metadata_offsets={
            "metadata_offset": holder.metadata_offset,
            "version_metadata_offset": version.metadata_offset,
        },
        values={"broker_epoch": holder.broker_epoch, "version_broker_epoch": version.broker_epoch},
        frames={"frame": mine.frame, "before_frame": before.frame},
        times={"asked": mine.asked_ns, "before_asked": before.asked_ns},
        sources={"asked": "frame", "before_asked": "before_frame"}
        | dict.fromkeys(("by_incarnation_id", "broker_epoch"), "metadata_offset")
        | dict.fromkeys(("incarnation_id", "version_broker_epoch"), "version_metadata_offset"),
        incarnation_id=version.incarnation_id,
        broker_id=broker.broker_id,
        by_incarnation_id=holder.incarnation_id,
    )


def _proof(broker: BrokerHistory, version: BrokerVersion, by: BrokerVersion) -> Proof:
    return Proof.of(
        "incarnation {incarnation_id} registered as broker {broker_id} at metadata "
        "offset {version_metadata_offset}, after incarnation {by_incarnation_id} had "
        "taken its place at metadata offset {metadata_offset}",
        metadata_offsets={
            "metadata_offset": by.metadata_offset,
            "version_metadata_offset": version.metadata_offset,
        },
        values={"broker_epoch": by.broker_epoch, "version_broker_epoch": version.broker_epoch},
        sources=dict.fromkeys(("by_incarnation_id", "broker_epoch"), "metadata_offset")
        | dict.fromkeys(("incarnation_id", "version_broker_epoch"), "version_metadata_offset"),
        incarnation_id=version.incarnation_id,
        broker_id=broker.broker_id,
        by_incarnation_id=by.incarnation_id,
    )


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="L7",
            name=NAME,
            title="An incarnation took the place of one that came after it",
            rule="In the registrations of a broker id, no incarnation comes again after another "
            "one; and none comes after another by a request that had arrived at the proxy earlier "
            "than that one's.",
            meaning="A registration out of the past replaces the broker that lives now.",
            case="a registration of a broker id after its first one",
            source="KIP-631",
            needs=("metadata_log",),
        ),
        kernel=incarnations_that_went_back,
        split=Split.BROKERS,
        tables=("metadata_log", "wire"),
    ),
)
