"""Leaders of which the controller has not heard."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
from metadata_logs import asked, metadata_log, told, wire
from proving import assert_proof, facts_of_proof

from fencepost.checkers.control_plane.inactive_leader import inactive_leaders
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof
from fencepost.history.clock import ClockSkew
from fencepost.history.cluster_schema import NODE_SETTINGS
from fencepost.history.ensemble_schema import ENSEMBLE

MS = 1_000_000
FACTS = Facts(node_ids={"zookeeper-1": 2001, "broker-1": 1, "broker-2": 2, "broker-3": 3})
TIMEOUTS = {"controller.heartbeat.timeout.ms": "2000", "zookeeper.session.timeout.ms": "3000"}
LOG = """
    1 runs-on 1 h1 version 5 at 100
    2 runs-on 2 h2 version {version} at 200
    3 leader 3 at 1000
    {registered}
    5 topic t at 1500
    6 partition t-0 replicas 1,2 isr 1,2 leader 1 at 1600
    7 change t-0 isr 2 leader 2 at {elected}
    8 {ends} at {end}
"""
FIRST = "at 1550 broker-1 to broker-3 beats epoch 1 -> ok at 1560"
SECOND = "at {} broker-2 to broker-3 beats epoch 2 -> {}"


def found(
    *lines: str,
    version: int = 5,
    elected: int = 5000,
    ends: str = "noop",
    end: int = 9000,
    registered: str = "4 noop",
    settings: dict[str, str] = TIMEOUTS,
    outage: tuple[int, int] = (0, 0),
    skews: tuple[ClockSkew, ...] = (),
) -> tuple[list[Proof], int]:
    log = LOG.format(
        version=version, elected=elected, ends=ends, end=end, registered=registered
    ).replace("4 noop", "")
    rows = [{"node": "broker-3", "name": name, "value": one} for name, one in settings.items()]
    given = {
        "metadata_log": metadata_log(zookeeper_1=log),
        "wire": wire("\n".join((FIRST, *lines))),
        "node_settings": pa.Table.from_pylist(rows, schema=NODE_SETTINGS),
        "ensemble": answers(*outage),
    }
    return told(asked(inactive_leaders, given, replace(FACTS, skews=skews)))


def answers(from_ms: int, until_ms: int) -> pa.Table:
    """ZooKeeper's server leads, and is asked twice a second, but in this time."""
    rows = [
        {"asked_ns": at * MS, "time_ns": at * MS, "node": "zookeeper-1", "serving": True}
        | {"mode": "leader", "zxid": 1}
        for at in range(0, 60_000, 500)
        if not from_ms < at < until_ms
    ]
    return pa.Table.from_pylist(rows, schema=ENSEMBLE)


def test_a_broker_is_elected_that_has_sent_no_heartbeat() -> None:
    (proof,), count = found(elected=9000, end=13_000)
    assert_proof(
        proof,
        "none of its heartbeats",
        broker_id=2,
        key="t-0",
        metadata_offset=7,
        controller="broker-3",
        since=1101,
    )
    assert count == 4
    # The controller before may have heard of it, unless it registered with this one in office.
    assert found() == ([], 4)
    new = "4 register 2 unfenced at 1200"
    # Those of the incarnation before say nothing of this one.
    for lines in ([], [SECOND.format(1150, "ok at 1160")]):
        (proof,), _ = found(*lines, registered=new)
        assert_proof(proof, "no heartbeat of its incarnation", broker_id=2)
    own = SECOND.replace("epoch 2", "epoch 4")
    assert found(own.format(4000, "ok at 4010"), registered=new) == ([], 4)
    assert found(own.format(4000, "nothing"), registered=new) == ([], 4)
    assert found(SECOND.format(4000, "ok at 4010")) == ([], 4)
    # One without an answer may have been taken.
    assert found(SECOND.format(4000, "nothing")) == ([], 4)


def test_a_broker_is_elected_whose_last_heartbeat_is_too_old() -> None:
    old = SECOND.format(2000, "ok at 2010")
    (proof,), _ = found(old, elected=20_000, end=25_000)
    assert_proof(proof, "its last heartbeat had reached", controller="broker-3", reached=2000)
    assert found(old, elected=8000) == ([], 4)
    # It may have waited for ZooKeeper: 7 s are over once that has been back for 2 s.
    assert found(old, elected=20_000, end=25_000, outage=(7000, 19_000)) == ([], 4)
    assert found(old, elected=20_000, end=25_000, outage=(7000, 17_000))[0] == [proof]


def test_a_controller_that_was_paused_takes_a_heartbeat_when_it_goes_on() -> None:
    sessions = TIMEOUTS | {"zookeeper.session.timeout.ms": "18000"}
    taken = SECOND.format(4000, "ok at {}")
    late, soon = taken.format(15_010), taken.format(4010)
    assert found(late, elected=15_000, end=16_000, settings=sessions) == ([], 4)
    assert found(soon, elected=15_000, end=16_000, settings=sessions)[0]
    lives = "at 38000 broker-1 to broker-3 beats epoch 1 -> ok at 38010"
    assert found(late, lives, end=40_000, settings=sessions) == ([], 4)
    assert found(soon, lives, end=40_000, settings=sessions)[0]


def test_an_answer_to_what_came_earlier_does_not_tell_that_the_controller_lived() -> None:
    """Its answer may have been under way for as long."""
    last = SECOND.format(4000, "ok at 4010")
    lives = "at {} broker-1 to broker-3 beats epoch 1 -> ok at 30010"
    assert found(last, lives.format(4200), end=40_000) == ([], 4)
    assert found(last, lives.format(15_000), end=40_000)[0]


def ahead(from_ms: int, until_ms: int, *, at_least_ms: int = 0) -> ClockSkew:
    """A server's clock is ahead in this time, by up to 14 s."""
    return ClockSkew(
        node="zookeeper-1",
        from_ns=from_ms * MS,
        until_ns=until_ms * MS,
        ahead_min_ns=at_least_ms * MS,
        ahead_max_ns=14_000 * MS,
    )


def test_what_was_silent_before_it_surely_led_is_held_against_no_leader() -> None:
    """A wrong clock leaves open when it was elected, and it was away until shortly before."""
    others = [
        f"at {at} broker-1 to broker-3 beats epoch 1 -> ok at {at + 10}"
        for at in range(2000, 40_000, 1000)
    ]
    back = [SECOND.format(at, f"ok at {at + 10}") for at in (4000, *range(26_000, 36_000, 500))]
    wrong = ahead(0, 60_000)
    away: dict[str, Any] = {"elected": 28_000, "ends": "change t-0 isr 1,2 leader 1", "end": 36_000}
    assert not found(*others, *back, **away)[0]
    assert not found(*others, *back, **away, skews=(wrong,))[0]
    silent = {**away, "elected": 5000, "end": 39_000}
    assert found(*others, back[0], **silent, skews=(wrong,))[0]


def test_a_wrong_clock_hides_neither_an_outage_nor_when_a_deletion_was_decided() -> None:
    last = SECOND.format(4000, "ok at 4010")
    lives = "at 30000 broker-1 to broker-3 beats epoch 1 -> ok at 30010"
    # Records from after the outage may seem to be of the time in which there were no writes.
    written = "\n".join(f"{at} noop at {at}" for at in range(27_000, 40_000, 500))
    outage: dict[str, Any] = {"outage": (10_000, 27_000), "end": 41_000}
    ends = f"noop at 9900\n{written}\n50000 noop"
    assert not found(last, lives, **outage, ends=ends)[0]
    assert not found(last, lives, **outage, ends=ends, skews=(ahead(10_000, 26_000),))[0]
    # It was decided at 12 s, and stamped 26 s, later than the record behind it.
    deleted = "to-delete t at 26000\n9 noop"
    lives = "at 15000 broker-1 to broker-3 beats epoch 1 -> ok at 15010"
    assert found(last, lives, ends=deleted, end=25_000)[0]
    wrong = ahead(11_900, 12_500, at_least_ms=14_000)
    assert not found(last, lives, ends=deleted, end=25_000, skews=(wrong,))[0]


def test_a_leader_that_fell_silent_leads_on() -> None:
    last = SECOND.format(4000, "ok at 4010")
    lives = "at 30000 broker-1 to broker-3 beats epoch 1 -> ok at 30010"
    (proof,), _ = found(last, lives, end=40_000)
    assert_proof(proof, "led {key} since", broker_id=2, key="t-0", metadata_offset=7)
    assert 39_800 <= facts_of_proof(proof)["until"] < 39_900
    # ZooKeeper took no write meanwhile: it is given 10 s without that time.
    assert found(last, lives, end=40_000, outage=(10_000, 27_000))[0] == []
    assert found(last, lives, end=40_000, outage=(10_000, 25_000))[0] == [proof]
    # It had no time to act; nothing says that it lived; it was deposed, or moved the leadership.
    assert found(last, lives, end=30_500)[0] == []
    assert found(last, end=40_000)[0] == []
    assert found(last, lives, ends="leader 1", end=20_000)[0] == []
    moved = "change t-0 isr 1 leader 1"
    assert (
        found(last, lives, FIRST.replace("1550", "9000").replace("1560", "9010"), ends=moved)[0]
        == []
    )


def test_a_topic_that_is_to_be_deleted_is_led_as_it_was_until_it_is_gone() -> None:
    last = SECOND.format(4000, "ok at 4010")
    lives = "at 30000 broker-1 to broker-3 beats epoch 1 -> ok at 30010"
    for end in ("to-delete t", "delete t"):
        assert found(last, lives, ends=f"{end} at 9000\n    9 noop", end=40_000)[0] == []
    late = "to-delete t at 39000\n    9 noop"
    (proof,), _ = found(last, lives, ends=late, end=40_000)
    assert 38_800 <= facts_of_proof(proof)["until"] < 39_000
    assert found(last, lives, ends="to-delete u at 9000\n    9 noop", end=40_000)[0] != []


def test_neither_legacy_brokers_nor_clusters_without_heartbeats_are_judged() -> None:
    assert found(version=4) == ([], 2)
    assert found(settings={}) == ([], 0)
