"""L10 to L13: heartbeats of brokers that register in ZooKeeper, and the time-outs by them."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.frames import TapeRow
from fencepost.checkers.metadata.isr_changes import ISR_CHANGE
from fencepost.checkers.metadata.metadata_heartbeats import (
    BROKER_SIDE,
    CONTROLLER_SIDE,
    METADATA_HEARTBEAT,
    heartbeats_of,
    timeouts_ms,
)
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.setting_values import whole_number
from fencepost.checkers.metadata.view import METADATA, MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

REFUSED_ENTRY: Final = CatalogueEntry.of(
    """L10 valid-incarnation-refused: A living broker's heartbeat was refused.

    A MetadataHeartbeat that named the newest incarnation id registered until its answer arrived was
    answered INVALID_INCARNATION_ID.

    An incarnation id below the one that the controller knows is of an old incarnation; one above is
    of a newer one, which the controller has not seen register yet, and takes over.

    Meaning: A broker that has just restarted is taken for a process of the past.
    Case: an answered heartbeat of the newest incarnation
    Source: Draft: controller heartbeats, broker incarnation ids
    """,
    nearness=Nearness.METADATA,
    rests_on=("whole-tape",),
    needs=("wire", "metadata_log", "transaction_log"),
)
REFUSED: Final = REFUSED_ENTRY.name
TIMEOUTS_ENTRY: Final = CatalogueEntry.of(
    """L11 timeouts-out-of-order: A broker runs with time-outs in the wrong order.

    The broker.heartbeat.timeout.ms of a node that has registered is not longer than its
    controller.heartbeat.timeout.ms, or than that of another broker.

    No broker may fence itself before the controller counts on it no more, and any broker may be the
    controller. A node with another configuration refuses to start; one that states it and has
    registered was not refused.

    Meaning: A broker fences itself while the controller still counts on it.
    Case: a broker that states both time-outs and has registered
    Source: Draft: controller heartbeats, broker incarnation ids
    """,
    nearness=Nearness.REGISTRATION,
    needs=("node_settings", "metadata_log", "transaction_log"),
)
TIMEOUTS: Final = TIMEOUTS_ENTRY.name
ACCEPTED_ENTRY: Final = CatalogueEntry.of(
    """L12 bad-heartbeat-accepted: A heartbeat that cannot be meant was accepted.

    A MetadataHeartbeat with a negative broker id, or a target state other than ACTIVE and STOPPING,
    was answered without an error.

    It has to be answered INVALID_REQUEST.

    Meaning: The controller keeps a state of a broker that there is not.
    Case: an answered heartbeat with such a field
    Source: Draft: controller heartbeats, broker incarnation ids
    """,
    nearness=Nearness.REGISTRATION,
    needs=("wire", "transaction_log"),
)
ACCEPTED: Final = ACCEPTED_ENTRY.name
UNGATED_ENTRY: Final = CatalogueEntry.of(
    """L13 ungated-request: A broker spoke a protocol that is not in force.

    A broker whose inter.broker.protocol.version is below 2 sent a MetadataHeartbeat or an
    IsrChange.

    A broker that is given the protocol that has both on the way is judged until then.

    Meaning: Controllers of the software before are asked what they do not understand.
    Case: a broker below the protocol
    Source: Draft: controller heartbeats, broker incarnation ids
    """,
    nearness=Nearness.REGISTRATION,
    needs=("wire", "node_settings", "transaction_log"),
)
UNGATED: Final = UNGATED_ENTRY.name
_REFUSAL: Final = "INVALID_INCARNATION_ID"
_TARGETS: Final = ("ACTIVE", "STOPPING")
_PROTOCOL: Final = "inter.broker.protocol.version"
_GATED_FROM: Final = 2


def refused_incarnations(tables: Tables, seen: MetadataView) -> Judged:
    """Find refused heartbeats of the newest incarnation. Reads `wire` and `metadata_log`."""
    if seen.log.doubt:
        yield from doubtful(REFUSED, seen.log.doubt)
        return
    for broker_id, heartbeats in sorted(heartbeats_of(streamed(tables, "wire")).items()):
        key = f"broker {broker_id}"
        yield key, counted(REFUSED, key, _refused(broker_id, heartbeats, seen))


def _refused(
    broker_id: int, heartbeats: Sequence[Rpc], seen: MetadataView
) -> Iterator[Proof | None]:
    history = seen.brokers.get(broker_id)
    registrations = () if history is None else tuple(history.registrations())
    made = sorted(
        (seen.facts.earliest_ns(one.timestamp_ms), one.broker_epoch) for one in registrations
    )
    newest = list(accumulate((epoch for _, epoch in made), max))
    for rpc in heartbeats:
        if rpc.answered_ns is None:
            continue
        possible = bisect_right(made, rpc.answered_ns, key=itemgetter(0))
        if possible and rpc.of("broker_epoch") >= newest[possible - 1]:
            yield _proof(rpc) if rpc.error == _REFUSAL else None


def _proof(rpc: Rpc) -> Proof:
    return Proof.of(
        "{target} answered the heartbeat of broker {broker_id} with incarnation id {incarnation} "
        "(frame {frame}) with INVALID_INCARNATION_ID at {answered}, and no later registration of "
        "that broker had been made",
        frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
        values={"incarnation": rpc.of("broker_epoch")},
        times={"answered": rpc.answered_ns},
        sources={"incarnation": "frame", "broker_id": "frame", "answered": "answer_frame"},
        target=rpc.target,
        broker_id=rpc.of("broker_id"),
    )


def timeouts_out_of_order(tables: Tables, seen: MetadataView) -> Judged:
    """Find nodes with time-outs in the wrong order. Reads `node_settings` and `metadata_log`."""
    if seen.log.doubt:
        yield from doubtful(TIMEOUTS, seen.log.doubt)
        return
    settings = tables["node_settings"]
    controller_side = timeouts_ms(settings, CONTROLLER_SIDE)
    broker_side = timeouts_ms(settings, BROKER_SIDE)
    there = [
        node
        for node in sorted(broker_side.keys() & controller_side.keys())
        if seen.facts.node_ids.get(node, -1) in seen.brokers
    ]
    # Any of them may be the controller: its own time-out is told, if that is in order with none.
    last = max(there, key=lambda one: controller_side[one], default="")
    answers = [
        None
        if broker_side[node] > controller_side[last]
        else _in_wrong_order(node, broker_side[node], by, controller_side[by])
        for node in there
        for by in [node if broker_side[node] <= controller_side[node] else last]
    ]
    yield METADATA, counted(TIMEOUTS, METADATA, answers)


def _in_wrong_order(node: str, broker_side_ms: int, by: str, controller_side_ms: int) -> Proof:
    return Proof.of(
        "{node} runs with a broker-side time-out of {broker_side}, which is not longer than the "
        "controller-side one of {by}, {controller_side}",
        durations={
            "broker_side": broker_side_ms * 1_000_000,
            "controller_side": controller_side_ms * 1_000_000,
        },
        node=node,
        by=by,
    )


def accepted_heartbeats(tables: Tables, seen: MetadataView) -> Judged:  # noqa: ARG001  # as all kernels
    """Find heartbeats that had to be refused, by broker. Reads `wire`."""
    wire = streamed(tables, "wire")
    states = _target_states(wire)
    for broker_id, heartbeats in sorted(heartbeats_of(wire).items()):
        key = f"broker {broker_id}"
        yield key, counted(ACCEPTED, key, _accepted(broker_id, heartbeats, states))


def _target_states(wire: Source) -> Mapping[int, str | None]:
    """Return the target state that each heartbeat names, by the frame of its request."""
    found: dict[int, str | None] = {}
    for batch in wire(("frame", "connection", "item", "api", "direction", "detail")):
        asked = batch.filter(
            pc.and_(
                pc.equal(batch.column("api"), METADATA_HEARTBEAT),
                pc.equal(batch.column("direction"), "request"),
            )
        )
        told = (asked.column(name).to_pylist() for name in ("frame", "detail"))
        found |= dict(zip(*told, strict=True))
    return found


def _accepted(
    broker_id: int, heartbeats: Sequence[Rpc], states: Mapping[int, str | None]
) -> Iterator[Proof | None]:
    for rpc in heartbeats:
        state = states[rpc.frame]
        if rpc.response is None or (broker_id >= 0 and state in _TARGETS):
            continue
        yield (
            None
            if not rpc.ok
            else Proof.of(
                "{target} answered a heartbeat of broker {broker_id} with target state {state} "
                "(frame {frame}) without an error",
                frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
                sources=dict.fromkeys(("broker_id", "state"), "frame"),
                target=rpc.target,
                broker_id=broker_id,
                state=state,
            )
        )


def ungated_requests(tables: Tables, _: MetadataView) -> Judged:
    """Find requests of a protocol that is not in force. Reads `wire` and `node_settings`."""
    wire = streamed(tables, "wire")
    if not any(batch.num_rows for batch in wire(TapeRow._fields)):
        return
    for node, until_ns in sorted(_below(tables["node_settings"]).items()):
        sent = rpcs(wire, METADATA_HEARTBEAT, ISR_CHANGE)
        mine = (one for one in sent if one.source == node and one.asked_ns < until_ns)
        found = next(mine, None)
        yield node, counted(UNGATED, node, [None if found is None else _ungated(found)])


def _below(settings: pa.Table) -> Mapping[str, float]:
    """Return the nodes that begin below the protocol, and when they are given it."""
    rows = settings.filter(pc.equal(settings["name"], _PROTOCOL)).to_pylist()
    stated = [
        (one["node"], protocol, one["since_ns"])
        for one in rows
        # Those of Kafka's own are no numbers, and have neither request.
        if (protocol := whole_number(one["value"])) is not None
    ]
    below = {node: math.inf for node, protocol, _ in stated if protocol < _GATED_FROM}
    first = {node: protocol for node, protocol, since_ns in stated if since_ns is None}
    for node, protocol, since_ns in stated:
        if protocol >= _GATED_FROM and since_ns is not None:
            below[node] = min(below.get(node, math.inf), since_ns)
    return {node: until for node, until in below.items() if first.get(node, 0) < _GATED_FROM}


def _ungated(rpc: Rpc) -> Proof:
    return Proof.of(
        "{source} sent a {api} at {asked} (frame {frame}), below the inter-broker protocol that "
        "has it",
        frames={"frame": rpc.frame},
        times={"asked": rpc.asked_ns},
        sources={"asked": "frame", "api": "frame"},
        source=rpc.source,
        api=rpc.api,
    )


_SOURCE: Final = "Draft: controller heartbeats, broker incarnation ids"

CHECKS: Final = (
    TableCheck(
        entry=REFUSED_ENTRY,
        kernel=refused_incarnations,
        split=Split.BROKERS,
        apis=(METADATA_HEARTBEAT,),
        tables=("wire", "metadata_log"),
    ),
    TableCheck(
        entry=TIMEOUTS_ENTRY,
        kernel=timeouts_out_of_order,
        tables=("node_settings", "metadata_log"),
    ),
    TableCheck(
        entry=ACCEPTED_ENTRY,
        kernel=accepted_heartbeats,
        split=Split.BROKERS,
        apis=(METADATA_HEARTBEAT,),
        tables=("wire",),
    ),
    TableCheck(
        entry=UNGATED_ENTRY,
        kernel=ungated_requests,
        split=Split.BROKERS,
        tables=("wire", "node_settings"),
    ),
)
