"""L10 and L11: heartbeats of brokers that register in ZooKeeper, and the time-outs by them.

valid-incarnation-refused: a controller compares the incarnation id of a heartbeat with the one that
it knows. One below is of an old incarnation; one above is of a newer one, which the controller has
not seen register yet, and takes over. So a heartbeat that names the newest of all incarnation ids
registered until its answer arrived must not be answered INVALID_INCARNATION_ID.

timeouts-out-of-order: the broker-side time-out must be longer than the controller-side one, so that
no broker fences itself before the controller counts on it no more. A node with another
configuration refuses to start; one that states it and runs was not refused.

Source: the draft "Controller heartbeats, broker incarnation ids".
"""

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.entry import Entry
from checkers.facts import Judged, Tables
from checkers.metadata.metadata_heartbeats import (
    BROKER_SIDE,
    CONTROLLER_SIDE,
    heartbeats_of,
    timeouts_ms,
)
from checkers.metadata.rpcs import Rpc
from checkers.metadata.view import METADATA, View, counted, doubtful
from checkers.proof import Proof
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "REFUSED", "TIMEOUTS", "refused_incarnations", "timeouts_out_of_order"]

REFUSED: Final = "valid-incarnation-refused"
TIMEOUTS: Final = "timeouts-out-of-order"
_REFUSAL: Final = "INVALID_INCARNATION_ID"


def refused_incarnations(tables: Tables, seen: View) -> Judged:
    """Find refused heartbeats of the newest incarnation. Reads `wire` and `metadata_log`."""
    if seen.log.doubt:
        yield from doubtful(REFUSED, seen.log.doubt)
        return
    for broker_id, heartbeats in sorted(heartbeats_of(tables["wire"]).items()):
        key = f"broker {broker_id}"
        yield key, counted(REFUSED, key, _refused(broker_id, heartbeats, seen))


def _refused(broker_id: int, heartbeats: Sequence[Rpc], seen: View) -> Iterator[Proof | None]:
    history = seen.brokers.get(broker_id)
    registrations = () if history is None else tuple(history.registrations())
    for rpc in heartbeats:
        if rpc.answered_ns is None:
            continue
        possible = [
            one.broker_epoch
            for one in registrations
            if seen.facts.earliest_ns(one.timestamp_ms) <= rpc.answered_ns
        ]
        if possible and rpc.of("broker_epoch") >= max(possible):
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


def timeouts_out_of_order(tables: Tables, _: View) -> Judged:
    """Find nodes with time-outs in the wrong order. Reads `node_settings`."""
    settings = tables["node_settings"]
    controller_side = timeouts_ms(settings, CONTROLLER_SIDE)
    broker_side = timeouts_ms(settings, BROKER_SIDE)
    answers = [
        None
        if broker_side[node] > controller_side[node]
        else _in_wrong_order(node, broker_side[node], controller_side[node])
        for node in sorted(broker_side.keys() & controller_side.keys())
    ]
    yield METADATA, counted(TIMEOUTS, METADATA, answers)


def _in_wrong_order(node: str, broker_side_ms: int, controller_side_ms: int) -> Proof:
    return Proof.of(
        "{node} runs with a broker-side time-out of {broker_side}, which is not longer than the "
        "controller-side one of {controller_side}",
        durations={
            "broker_side": broker_side_ms * 1_000_000,
            "controller_side": controller_side_ms * 1_000_000,
        },
        node=node,
    )


_SOURCE: Final = "Draft: controller heartbeats, broker incarnation ids"

CHECKS: Final = (
    TableCheck(
        entry=Entry(
            id="L10",
            name=REFUSED,
            title="A living broker's heartbeat was refused",
            rule="A MetadataHeartbeat that named the newest incarnation id registered until its "
            "answer arrived was answered INVALID_INCARNATION_ID.",
            meaning="A broker that has just restarted is taken for a process of the past.",
            case="an answered heartbeat of the newest incarnation",
            source=_SOURCE,
            needs=("wire", "metadata_log", "transaction_log"),
        ),
        kernel=refused_incarnations,
        tables=("wire", "metadata_log"),
    ),
    TableCheck(
        entry=Entry(
            id="L11",
            name=TIMEOUTS,
            title="A broker runs with time-outs in the wrong order",
            rule="A node's broker.heartbeat.timeout.ms is not longer than its "
            "controller.heartbeat.timeout.ms.",
            meaning="A broker fences itself while the controller still counts on it.",
            case="a node that states both time-outs",
            source=_SOURCE,
            needs=("node_settings", "transaction_log"),
        ),
        kernel=timeouts_out_of_order,
        tables=("node_settings",),
    ),
)
