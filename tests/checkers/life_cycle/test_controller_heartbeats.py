"""Heartbeats that a controller on ZooKeeper had to take, and time-outs in the wrong order."""

import pyarrow as pa
from metadata_logs import ON_ZOOKEEPER, asked, case_count, metadata_log, proofs, sentence, wire

from checkers.life_cycle.controller_heartbeats import refused_incarnations, timeouts_out_of_order
from history.cluster_schema import NODE_SETTINGS

LOG = "3 register 2 unfenced at 1000\n9 register 2 unfenced at 5000"


def refused(line: str) -> tuple[list[str], int]:
    given = {"metadata_log": metadata_log(zookeeper_1=LOG), "wire": wire(line)}
    judged = list(asked(refused_incarnations, given, ON_ZOOKEEPER))
    told = [one.sentence for of_key in proofs(judged).values() for one in of_key]
    return told, case_count(judged)


def test_the_newest_incarnation_is_refused() -> None:
    beat = "at {0} broker-2 to broker-1 beats epoch {1} -> {2} at {0}"
    (told,), count = refused(beat.format(7000, 9, "INVALID_INCARNATION_ID"))
    assert told == sentence(
        """broker-1 answered the heartbeat of broker 2 with incarnation id 9 (frame 0) with
        INVALID_INCARNATION_ID at 7.000 s, and no later registration of that broker had been
        made"""
    )
    assert count == 1
    assert refused(beat.format(7000, 9, "ok")) == ([], 1)
    assert refused(beat.format(7000, 9, "NOT_CONTROLLER")) == ([], 1)
    assert refused(beat.format(7000, 3, "INVALID_INCARNATION_ID")) == ([], 0)
    assert refused("at 7000 broker-2 to broker-1 beats epoch 9 -> nothing") == ([], 0)


def test_a_broker_fences_itself_later_than_the_controller_gives_it_up() -> None:
    def found(broker_side: int) -> tuple[list[str], int]:
        told = {"controller.heartbeat.timeout.ms": 2000, "broker.heartbeat.timeout.ms": broker_side}
        rows = [
            {"node": "broker-1", "name": name, "value": str(value)} for name, value in told.items()
        ]
        given = {"node_settings": pa.Table.from_pylist(rows, schema=NODE_SETTINGS)}
        judged = list(asked(timeouts_out_of_order, given, ON_ZOOKEEPER))
        return [one.sentence for all_ in proofs(judged).values() for one in all_], case_count(
            judged
        )

    assert found(2001) == ([], 1)
    told, count = found(2000)
    assert told == [
        sentence(
            """broker-1 runs with a broker-side time-out of 2.000 s, which is not longer than the
            controller-side one of 2.000 s"""
        )
    ]
    assert count == 1
