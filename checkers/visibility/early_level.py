"""V5 early-renegotiation: A broker offers the APIs of a level that another one does not know yet.

A broker answered ApiVersions with a level of metadata.version, and a broker that was unfenced, from
the request to the answer, had not acknowledged the record of that level by then in a heartbeat of
its registration. Judged of levels at which brokers are told the lowest acknowledged offset.

A broker answers ApiVersions by the metadata.version that it shows. Where brokers are told the
lowest acknowledged offset, a new level is shown once every unfenced broker has acknowledged the
record that sets it: a client that speaks by the new level is then understood everywhere.

The one who offers a level cannot know that a broker has applied it which has not acknowledged it
(`visibility.acknowledgements`).

A cluster that tells nothing of what all have acknowledged promises nothing of this kind, nor does a
level that does not do so yet: only those levels are judged during whose reign a broker was told a
lowest acknowledged offset at or above their record. A level that is lower than the one before it
takes APIs away, which is legal at any time.

The reference cluster's own levels are 1 to 3, and its metadata log states Kafka's with the same
record formats in their place.

Meaning: A client speaks in a way that another broker does not understand.
Case: an answer to ApiVersions that offers a level at which brokers are told the lowest acknowledged
offset
Source: the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, "Read-after-write
visibility"; KIP-584
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.beats import beats_of
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.visibility.acknowledgements import Acknowledgements, Bound
from fencepost.checkers.visibility.metadata_version_intervals import (
    RaisedLevel,
    levels_with_visibility,
    raised_levels,
    told_offsets,
)

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.METADATA,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name

_LOGGED: Final[Mapping[int, int]] = {1: 8, 2: 10, 3: 14}
"""Kafka's level in the metadata log, by the reference cluster's own as it offers it."""


def early_offers(tables: Tables, seen: MetadataView) -> Judged:
    """Yield the findings on the levels that brokers offered. Reads `metadata_log` and `wire`."""
    tape = streamed(tables, "wire")
    asked = rpcs(tape, "ApiVersions")
    offers = [rpc for rpc in asked if rpc.answered("metadata_version")]
    if offers and seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    levels = (
        levels_with_visibility(raised_levels(seen.log.records), told_offsets(tape))
        if offers
        else ()
    )
    found: dict[str, list[Proof | None]] = {rpc.target: [] for rpc in offers}
    if levels:
        acknowledged = Acknowledgements(seen, beats_of(tape))
        for rpc in offers:
            answers = list(_judged(rpc, levels, acknowledged))
            early = next((one for one in answers if one is not None), None)
            found[rpc.target] += [early] if answers else []
    for node in sorted(found):
        yield node, counted(NAME, node, found[node])


def _judged(
    rpc: Rpc, levels: Sequence[RaisedLevel], acknowledged: Acknowledgements
) -> Iterator[Proof | None]:
    """Judge by the first raise to the level: a proof for each unfenced broker without it."""
    stated = rpc.answered("metadata_version")
    level = _LOGGED.get(stated, stated)
    raised = next((one for one in levels if one.level == level), None)
    if raised is None or not rpc.ok or rpc.reached_ns is None or rpc.answered_ns is None:
        return
    for one in acknowledged.unfenced(from_ns=rpc.reached_ns, until_ns=rpc.answered_ns):
        yield _early(rpc, raised, one) if one.acknowledged < raised.begin_offset else None


def _early(rpc: Rpc, raised: RaisedLevel, one: Bound) -> Proof:
    stated = rpc.answered("metadata_version")
    return Proof.of(
        "{target} offered metadata.version {stated} at {answered} (frame "
        "{answer_frame}), which metadata offset {begin_offset} sets, and broker "
        "{broker_id} (broker epoch {broker_epoch}), unfenced, had acknowledged no "
        "more than {acknowledged}",
        metadata_offsets={"acknowledged": one.acknowledged, "begin_offset": raised.begin_offset},
        values={"stated": stated, "broker_epoch": one.broker_epoch},
        frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame or rpc.frame},
        times={"answered": rpc.answered_ns or 0},
        target=rpc.target,
        broker_id=one.broker_id,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=early_offers,
        apis=("BrokerHeartbeat", "ApiVersions"),
    ),
)
