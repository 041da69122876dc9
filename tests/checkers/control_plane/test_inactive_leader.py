"""Leaders of which the controller has not heard."""

import pyarrow as pa
from metadata_logs import asked, case_count, metadata_log, proofs, sentence, wire

from checkers.control_plane.inactive_leader import inactive_leaders
from checkers.facts import Facts
from history.cluster_schema import NODE_SETTINGS
from history.ensemble_schema import ENSEMBLE

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
) -> tuple[list[str], int]:
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
    judged = list(asked(inactive_leaders, given, FACTS))
    told = [one.sentence for of_key in proofs(judged).values() for one in of_key]
    return told, case_count(judged)


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
    (told,), count = found(elected=9000, end=13_000)
    assert told == sentence(
        """broker 2 was elected the leader of t-0 at metadata offset 7; none of its heartbeats had
        reached broker-3, the controller since 1.101 s"""
    )
    assert count == 4
    # The controller before may have heard of it, unless it registered with this one in office.
    assert found() == ([], 4)
    assert "none of its heartbeats" in found(registered="4 register 2 unfenced at 1200")[0][0]
    assert found(SECOND.format(4000, "ok at 4010")) == ([], 4)
    # One without an answer may have been taken.
    assert found(SECOND.format(4000, "nothing")) == ([], 4)


def test_a_broker_is_elected_whose_last_heartbeat_is_too_old() -> None:
    old = SECOND.format(2000, "ok at 2010")
    (told,), _ = found(old, elected=20_000, end=25_000)
    assert "its last heartbeat had reached broker-3, the controller, at 2.000 s" in told
    assert found(old, elected=8000) == ([], 4)
    # It may have waited for ZooKeeper: 7 s are over once that has been back for 2 s.
    assert found(old, elected=20_000, end=25_000, outage=(7000, 19_000)) == ([], 4)
    assert found(old, elected=20_000, end=25_000, outage=(7000, 17_000))[0] == [told]


def test_a_leader_that_fell_silent_leads_on() -> None:
    last = SECOND.format(4000, "ok at 4010")
    lives = "at 30000 broker-1 to broker-3 beats epoch 1 -> ok at 30010"
    (told,), _ = found(last, lives, end=40_000)
    assert told.startswith("broker 2 led t-0 since metadata offset 7 and until after 39.8")
    # ZooKeeper took no write meanwhile: it is given 10 s without that time.
    assert found(last, lives, end=40_000, outage=(10_000, 27_000))[0] == []
    assert found(last, lives, end=40_000, outage=(10_000, 25_000))[0] == [told]
    # It had no time to act; nothing says that it lived; it was deposed, or moved the leadership.
    assert found(last, lives, end=30_500)[0] == []
    assert found(last, end=40_000)[0] == []
    assert found(last, lives, ends="leader 1", end=20_000)[0] == []
    moved = "change t-0 isr 1 leader 1"
    assert (
        found(last, lives, FIRST.replace("1550", "9000").replace("1560", "9010"), ends=moved)[0]
        == []
    )


def test_neither_legacy_brokers_nor_clusters_without_heartbeats_are_judged() -> None:
    assert found(version=4) == ([], 2)
    assert found(settings={}) == ([], 0)
