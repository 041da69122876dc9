"""L7 incarnation-went-back: an incarnation registers again after another one took its place.

Each process start of a broker has an incarnation id of its own. It may register several times in a
row (4.x amends a registration that way), but once another incarnation holds the id, it is dead or
must learn that it is no longer meant: a registration of it that is accepted then comes from the
past, as one that lay in the network does.

Exact: the log of record has the registrations in the order in which they were decided.

Source: KIP-631, "Incarnation id"; `ClusterControlManager.registerBroker`.
"""

from collections.abc import Iterator
from typing import Final

from checkers.entry import Entry, Kind, Strength
from checkers.facts import Judged, Tables
from checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from checkers.metadata.view import View, counted, doubtful
from checkers.proof import Proof
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "NAME", "incarnations_that_went_back"]

NAME: Final = "incarnation-went-back"


def incarnations_that_went_back(_: Tables, seen: View) -> Judged:
    """Find registrations out of the past, by broker. Reads `metadata_log`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    for broker in seen.brokers.values():
        key = f"broker {broker.broker_id}"
        yield key, counted(NAME, key, _judged(broker))


def _judged(broker: BrokerHistory) -> Iterator[Proof | None]:
    replaced: dict[str, BrokerVersion] = {}
    holder: BrokerVersion | None = None
    for version in broker.registrations():
        if version.incarnation_id is None:
            continue
        if holder is not None and holder.incarnation_id != version.incarnation_id:
            assert holder.incarnation_id is not None
            replaced[holder.incarnation_id] = version
        if holder is not None:
            by = replaced.get(version.incarnation_id)
            yield None if by is None else _proof(broker, version, by)
        holder = version


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
        incarnation_id=version.incarnation_id,
        broker_id=broker.broker_id,
        by_incarnation_id=by.incarnation_id,
    )


CHECKS: Final = (
    TableCheck(
        entry=Entry(
            id="L7",
            name=NAME,
            title="An incarnation registered again after another took its place",
            kind=Kind.ANOMALY,
            rule="In the registrations of a broker id, no incarnation comes again after another "
            "one.",
            meaning="A registration out of the past replaces the broker that lives now.",
            case="a registration of a broker id after its first one",
            source="KIP-631",
            strength=Strength.NEVER,
            needs=("metadata_log",),
        ),
        kernel=incarnations_that_went_back,
    ),
)
