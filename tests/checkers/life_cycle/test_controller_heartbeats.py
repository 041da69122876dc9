"""Heartbeats that a controller on ZooKeeper had to take, and time-outs in the wrong order."""

import pyarrow as pa
from metadata_logs import ON_ZOOKEEPER, asked, metadata_log, told, wire
from proving import assert_proof

from fencepost.checkers.life_cycle.controller_heartbeats import (
    accepted_heartbeats,
    refused_incarnations,
    timeouts_out_of_order,
    ungated_requests,
)
from fencepost.checkers.proof import Proof
from fencepost.history.cluster_schema import NODE_SETTINGS

LOG = "3 register 2 unfenced at 1000\n9 register 2 unfenced at 5000"


def refused(line: str) -> tuple[list[Proof], int]:
    given = {"metadata_log": metadata_log(zookeeper_1=LOG), "wire": wire(line)}
    return told(asked(refused_incarnations, given, ON_ZOOKEEPER))


def test_the_newest_incarnation_is_refused() -> None:
    beat = "at {0} broker-2 to broker-1 beats epoch {1} -> {2} at {0}"
    (proof,), count = refused(beat.format(7000, 9, "INVALID_INCARNATION_ID"))
    assert_proof(
        proof,
        "and no later registration of that broker had been made",
        target="broker-1",
        broker_id=2,
        incarnation=9,
        frame=0,
        answered=7000,
    )
    assert count == 1
    assert refused(beat.format(7000, 9, "ok")) == ([], 1)
    assert refused(beat.format(7000, 9, "NOT_CONTROLLER")) == ([], 1)
    assert refused(beat.format(7000, 3, "INVALID_INCARNATION_ID")) == ([], 0)
    assert refused("at 7000 broker-2 to broker-1 beats epoch 9 -> nothing") == ([], 0)


def test_a_broker_fences_itself_later_than_the_controller_gives_it_up() -> None:
    def found(
        broker_side: int, log: str = "3 register 1 unfenced at 1000"
    ) -> tuple[list[Proof], int]:
        limits = {
            "controller.heartbeat.timeout.ms": 2000,
            "broker.heartbeat.timeout.ms": broker_side,
        }
        rows = [
            {"node": "broker-1", "name": name, "value": str(value)}
            for name, value in limits.items()
        ]
        given = {
            "node_settings": pa.Table.from_pylist(rows, schema=NODE_SETTINGS),
            "metadata_log": metadata_log(zookeeper_1=log),
        }
        return told(asked(timeouts_out_of_order, given, ON_ZOOKEEPER))

    assert found(2001) == ([], 1)
    (proof,), count = found(2000)
    assert_proof(
        proof, "is not longer than the", node="broker-1", broker_side=2000, controller_side=2000
    )
    assert count == 1
    # One that refused to start is not in the log.
    assert found(2000, LOG) == ([], 0)


def test_each_broker_outlasts_whichever_of_them_is_the_controller() -> None:
    def found(log: str) -> tuple[list[Proof], int]:
        rows = [
            {"node": node, "name": f"{side}.heartbeat.timeout.ms", "value": str(value)}
            for node, own, others in (("broker-1", 6000, 5000), ("broker-2", 3000, 2000))
            for side, value in (("broker", own), ("controller", others))
        ]
        given = {
            "node_settings": pa.Table.from_pylist(rows, schema=NODE_SETTINGS),
            "metadata_log": metadata_log(zookeeper_1=log),
        }
        return told(asked(timeouts_out_of_order, given, ON_ZOOKEEPER))

    both = "3 register 1 unfenced at 1000\n4 register 2 unfenced at 1000"
    (proof,), count = found(both)
    assert_proof(
        proof,
        "is not longer than the controller-side one of {by}",
        node="broker-2",
        by="broker-1",
        broker_side=3000,
        controller_side=5000,
    )
    assert count == 2
    # One that never registered is no controller.
    assert found(both.splitlines()[1]) == ([], 1)


def test_a_heartbeat_that_cannot_be_meant_is_accepted() -> None:
    def found(line: str) -> tuple[list[Proof], int]:
        return told(asked(accepted_heartbeats, {"wire": wire(line)}, ON_ZOOKEEPER))

    beat = "at 10 broker-2 to broker-1 beats epoch 9 wanting {} -> {} at 20"
    (proof,), count = found(beat.format("INITIAL", "ok"))
    assert_proof(
        proof, "without an error", target="broker-1", broker_id=2, state="INITIAL", frame=0
    )
    assert count == 1
    assert found(beat.format("INITIAL", "INVALID_REQUEST")) == ([], 1)
    assert found(beat.format("STOPPING", "ok")) == ([], 0)
    assert found("at 10 broker-2 beats epoch 9 wanting INITIAL -> nothing") == ([], 0)


def test_a_broker_speaks_a_protocol_that_is_not_in_force() -> None:
    def found(protocol: int, *lines: str, rolled_ms: int = 0) -> tuple[list[Proof], int]:
        setting = {"node": "broker-2", "name": "inter.broker.protocol.version"}
        settings = [{**setting, "value": str(protocol)}]
        if rolled_ms:
            settings.append({**setting, "value": "2", "since_ns": rolled_ms * 1_000_000})
        given = {
            "wire": wire("\n".join(lines)),
            "node_settings": pa.Table.from_pylist(settings, schema=NODE_SETTINGS),
        }
        return told(asked(ungated_requests, given, ON_ZOOKEEPER))

    change = "at 10 broker-2 changes t-0 isr 1,2 -> ok at 20"
    (proof,), count = found(1, change)
    assert_proof(
        proof,
        "below the inter-broker protocol that has it",
        source="broker-2",
        api="IsrChange",
        asked=10,
        frame=0,
    )
    assert count == 1
    assert found(1, change.replace("broker-2", "broker-1")) == ([], 1)
    assert found(2, change) == ([], 0)
    # It was given the protocol before, or only afterwards.
    assert found(1, change, rolled_ms=5) == ([], 1)
    assert found(1, change, rolled_ms=15) == ([proof], 1)
    assert found(2, change, rolled_ms=5) == ([], 0)
