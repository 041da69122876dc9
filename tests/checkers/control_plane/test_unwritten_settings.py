"""C21: changes of topics' settings that no client asked for."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
from metadata_logs import (
    FACTS,
    ON_ZOOKEEPER,
    asked,
    case_count,
    doubts,
    metadata_log,
    proofs,
    tables,
)
from proving import assert_proof

from fencepost.checkers.control_plane.unwritten_setting import unwritten_settings
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof
from fencepost.history.request_schema import METADATA_WRITES, PARTITION_WRITES

LOG = """
    1 topic t as id-a at 1000
    2 config t min.insync.replicas 2 at 1000
    3 partition t-0 replicas 1,2 isr 1,2 leader 1 at 1000
    4 config t retention.ms 1000000000007 at 2000
    9 noop at 9000
"""
LOWERED = LOG.replace("9 noop", "5 config t min.insync.replicas 1 at 3000\n    9 noop")
ALTER = {"f": "alter-config", "config_value": 7, "call_ns": 1950, "return_ns": 2050}


def judged(
    *writes: dict[str, Any], log: str = LOG, facts: Facts = FACTS, topic: str = "t"
) -> tuple[list[Proof], int]:
    """The proofs on a topic, and how many cases there were in all."""
    last = ({"f": "create-topic", "topic": "m", "call_ns": 8000},) if writes else ()
    rows = [
        {"process": 0, "node": "broker-1", "topic": "t", "outcome": "ok"}
        | write
        | {"index": number, "call_ns": 1_000_000 * write["call_ns"], "return_ns": None}
        for number, write in enumerate((*writes, *last))
    ]
    given = tables(
        metadata_log(**{facts.controllers[0]: log}),
        metadata_writes=pa.Table.from_pylist(rows, schema=METADATA_WRITES),
    )
    found = list(asked(unwritten_settings, given, facts))
    return proofs(found).get(topic, []), case_count(found)


def test_nobody_lowered_the_least_number_of_replicas() -> None:
    (proof,), cases = judged(ALTER, log=LOWERED)
    assert_proof(
        proof,
        "no client had called a change to that value by then",
        name="min.insync.replicas",
        topic="t",
        value="1",
        metadata_offset=5,
        by=3103,
    )
    assert cases == 2
    assert judged(ALTER) == ([], 1)


def test_a_write_that_was_refused_or_called_later_is_not_behind_it() -> None:
    assert judged(ALTER | {"outcome": "info"}) == ([], 1)
    assert len(judged(ALTER | {"outcome": "fail"})[0]) == 1
    assert len(judged(ALTER | {"call_ns": 2200})[0]) == 1
    assert len(judged(ALTER | {"topic": "u"})[0]) == 1
    assert len(judged()[0]) == 1


def test_what_stands_already_and_what_comes_with_a_creation_is_no_change() -> None:
    again = "5 config t retention.ms 1000000000007 at 3000\n    9 noop"
    assert judged(ALTER, log=LOG.replace("9 noop", again)) == ([], 1)
    assert judged(log=LOG.replace("4 config t retention.ms 1000000000007 at 2000", "")) == ([], 0)
    # Directly behind the creation, and not of its batch.
    later = LOG.replace("2 config t min.insync.replicas 2 at 1000", "").replace(
        "3 partition", "2 partition"
    )
    assert len(judged(log=later)[0]) == 1


def test_what_may_be_later_than_the_last_known_write_is_not_judged() -> None:
    late = LOG.replace("4 config t retention.ms 1000000000007 at 2000", "").replace(
        "9 noop", "8 config t min.insync.replicas 1 at 7950\n    9 noop"
    )
    assert judged(ALTER, log=late) == ([], 0)
    assert len(judged(ALTER, log=late.replace("7950", "7800"))[0]) == 1


def test_another_topic_of_that_name_begins_anew() -> None:
    anew = LOG.replace(
        "9 noop",
        "5 delete t at 3000\n    6 topic t as id-b at 4000\n"
        "    7 config t min.insync.replicas 3 at 4000\n    9 noop",
    )
    assert judged(ALTER, log=anew) == ([], 1)


def test_in_zookeeper_settings_go_before_their_topic() -> None:
    log = """
    1 config t min.insync.replicas 2 at 900
    2 topic t as id-a at 1000
    3 config t min.insync.replicas 1 at 3000
    9 noop at 9000
    """
    facts = Facts(node_ids=ON_ZOOKEEPER.node_ids, keys=("t-0",))
    proved, cases = judged(log=log, facts=facts)
    assert (len(proved), cases) == (1, 1)


def test_a_creation_that_is_asked_for_again_may_set_its_first_value_again() -> None:
    again = "5 config t retention.ms 1000000000000 at 3000\n    9 noop"
    create = {"f": "create-topic", "outcome": "info", "call_ns": 2900}
    assert judged(ALTER, create, log=LOG.replace("9 noop", again)) == ([], 2)
    assert len(judged(ALTER, log=LOG.replace("9 noop", again))[0]) == 1


def test_where_clients_were_to_write_and_no_write_is_known_nothing_is() -> None:
    assert judged(log=LOWERED, facts=replace(FACTS, recorded=("metadata_writes",))) == ([], 0)


def test_a_migration_copies_settings() -> None:
    migrating = replace(FACTS, node_ids={**FACTS.node_ids, "zookeeper-1": 2001})
    assert judged(log=LOWERED, facts=migrating) == ([], 0)


def test_topics_of_others_are_their_own_business() -> None:
    others = LOWERED.replace(" t ", " u ").replace("t-0", "u-0")
    assert judged(log=others, topic="u") == ([], 0)


def test_where_a_write_is_missing_from_its_table_nobody_is_accused() -> None:
    """The write of 7 is the first one there is, and carries the count of those before it."""
    run = replace(FACTS, recorded=("metadata_writes", "partition_writes"))
    row = {"index": 0, "process": 0, "node": "broker-1", "topic": "t", "outcome": "ok"}
    late = [row | ALTER | {"call_ns": 8_000_000_000, "return_ns": None}]
    given = tables(
        LOWERED,
        metadata_writes=pa.Table.from_pylist(late, schema=METADATA_WRITES),
        partition_writes=PARTITION_WRITES.empty_table(),
    )
    judged = list(asked(unwritten_settings, given, run))
    assert doubts(judged)
    assert not proofs(judged)
    whole = pa.Table.from_pylist([late[0] | {"config_value": 0}], schema=METADATA_WRITES)
    assert proofs(asked(unwritten_settings, given | {"metadata_writes": whole}, run))
