"""C15: acknowledged writes that the metadata log does not have."""

from typing import Any

import pyarrow as pa
import pytest
from metadata_logs import FACTS, ON_ZOOKEEPER, asked, doubts, metadata_log, proofs, tables
from proving import assert_proof

from fencepost.checkers.control_plane.lost_metadata_write import lost_metadata_writes
from fencepost.checkers.proof import Proof
from fencepost.history.request_schema import METADATA_WRITES

LOG = """
    1 topic m as id-a at 1000
    2 config m retention.ms 1000000000007 at 2000
    3 delete m at 3000
    4 topic n as id-b at 4000
    9 noop at 9000
"""
CREATE = {"f": "create-topic", "topic_id": "id-a", "call_ns": 950, "return_ns": 1050}
ALTER = {"f": "alter-config", "config_value": 7, "call_ns": 1950, "return_ns": 2050}
DELETE = {"f": "delete-topic", "call_ns": 2950, "return_ns": 3050}
WRITES = (CREATE, ALTER, DELETE)
IDS = ("create", "alter", "delete")


def lost(*writes: dict[str, Any], log: str = LOG, on_zookeeper: bool = False) -> list[Proof]:
    facts = ON_ZOOKEEPER if on_zookeeper else FACTS
    node = facts.controllers[0]
    tables_given = given(*writes, log=log, node=node)
    return proofs(asked(lost_metadata_writes, tables_given, facts, lingering=True)).get("m", [])


def given(
    *writes: dict[str, Any], log: str = LOG, node: str = "controller-1"
) -> dict[str, pa.Table]:
    rows = [
        {"process": 0, "node": "broker-1", "topic": "m", "outcome": "ok"}
        | write
        | {"index": number}
        | {name: 1_000_000 * write[name] for name in ("call_ns", "return_ns") if write[name]}
        for number, write in enumerate(writes)
    ]
    metadata = metadata_log(**{node: log}) if log else metadata_log()
    return tables(
        log,
        metadata_log=metadata,
        metadata_writes=pa.Table.from_pylist(rows, schema=METADATA_WRITES),
    )


@pytest.mark.parametrize("place", range(3), ids=IDS)
def test_what_was_acknowledged_is_not_in_the_log(place: int) -> None:
    line = LOG.strip().splitlines()[place]
    gone = LOG.replace(line, f"{place + 1} noop at {1000 * (place + 1)}")
    assert len(lost(WRITES[place], log=gone)) == 1
    assert not lost(WRITES[place])


def test_the_proof_says_which_write_and_how_far_the_log_goes() -> None:
    (proof,) = lost(ALTER | {"config_value": 8})
    assert_proof(
        proof,
        "a change of a setting of topic {topic} (to {config_value})",
        topic="m",
        config_value=8,
        call=1950,
        node="broker-1",
        return_=2050,
        write=0,
        until=8891,
    )


def test_a_batch_that_was_begun_before_the_call_may_have_got_the_record_later() -> None:
    late = ALTER | {"call_ns": 2400, "return_ns": 2500}
    assert not lost(late)
    assert lost(late, log=LOG.replace("3 delete m at 3000", "3 topic o as id-c at 2100"))


def test_a_deletion_stands_where_it_is_decided_and_the_topic_goes_later() -> None:
    later = LOG.replace("3 delete m at 3000", "3 noop at 3000\n4 noop at 3900\n5 delete m at 5300")
    later = later.replace("4 topic n", "6 topic n").replace("at 4000", "at 5400")
    assert lost(DELETE, log=later)
    assert not lost(DELETE, log=later.replace("3 noop", "3 to-delete m"))


def test_on_zookeeper_a_deletion_may_be_granted_once_more_when_it_is_done() -> None:
    log = LOG.replace("3 delete m at 3000", "3 to-delete m at 3000")
    unclear = DELETE | {"outcome": "info"}
    again = DELETE | {"call_ns": 5000, "return_ns": 5050}
    created = CREATE | {"call_ns": 4500, "return_ns": 4550, "topic_id": None}
    assert not lost(unclear, again, log=log, on_zookeeper=True)
    assert not lost(DELETE, again, log=log, on_zookeeper=True)
    assert lost(DELETE, created, again, log=log, on_zookeeper=True)
    assert lost(again, log=log, on_zookeeper=True)
    assert lost(unclear | {"call_ns": 4400, "return_ns": 4450}, again, log=log, on_zookeeper=True)
    assert lost(unclear, created, again, log=log, on_zookeeper=True)
    assert lost(unclear, again, log=log)


@pytest.mark.parametrize("write", WRITES, ids=IDS)
def test_a_record_from_another_time_is_not_the_writes(write: dict[str, Any]) -> None:
    assert lost(write | {"call_ns": 5000, "return_ns": 5050})
    assert lost(write | {"call_ns": 500, "return_ns": 550})


@pytest.mark.parametrize("write", WRITES, ids=IDS)
def test_what_was_not_acknowledged_or_lies_behind_the_end_is_not_judged(
    write: dict[str, Any],
) -> None:
    bare = "1 noop at 1\n9 noop at 9000"
    assert lost(write, log=bare)
    for outcome in ("info", "fail"):
        assert not lost(write | {"outcome": outcome}, log=bare)
    assert not lost(write | {"outcome": "info", "return_ns": None}, log=bare)
    assert not lost(write, log="1 noop at 1")
    assert not lost(write, log="snapshot 1 topic z at 1\n9 noop at 9000")


def test_a_creation_that_told_no_topic_id_is_not_judged() -> None:
    assert not lost(CREATE | {"topic_id": None}, log="9 noop at 9000")


def test_without_a_log_no_write_is_judged() -> None:
    assert doubts(asked(lost_metadata_writes, given(CREATE, log=""), FACTS))
