"""C7: what counts as different metadata, and what may legally differ."""

import pyarrow as pa
from metadata_logs import asked, facts, metadata_log, said, sentence, wire

from checkers.control_plane.metadata_divergence import metadata_divergences
from history.cluster_schema import METADATA_OFFSETS, METADATA_WRITES

THREE = facts(controllers=3)
GOOD = "0 leader 1000\n5 topic t\n6 noop\n90 noop"


def applied(*rows: tuple[int, str, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"time_ns": at_ms * 1_000_000, "node": node, "metadata_offset": offset}
            | {"source": "heartbeat"}
            for at_ms, node, offset in rows
        ],
        schema=METADATA_OFFSETS,
    )


def created(topic_id: str, at_ms: int) -> pa.Table:
    row = {"index": 0, "process": 0, "f": "create-topic", "node": "broker-1", "topic": "u"}
    times = {"call_ns": 0, "return_ns": at_ms * 1_000_000, "outcome": "ok"}
    return pa.Table.from_pylist([row | times | {"topic_id": topic_id}], schema=METADATA_WRITES)


def differ(
    log: pa.Table,
    offsets: pa.Table | None = None,
    writes: pa.Table | None = None,
    frames: str = "",
) -> list[str]:
    given = {
        "metadata_log": log,
        "wire": wire(frames),
        "metadata_offsets": applied() if offsets is None else offsets,
        "metadata_writes": METADATA_WRITES.empty_table() if writes is None else writes,
    }
    return said(asked(metadata_divergences, given, THREE)).get("metadata", [])


def same(text: str, **others: str) -> pa.Table:
    return metadata_log(
        **{"controller_1": text, "controller_2": text, "controller_3": text} | others
    )


def test_equal_copies_and_copies_that_end_early_are_no_divergence() -> None:
    assert not differ(same(GOOD, controller_3="0 leader 1000", broker_1=GOOD))


def test_one_epoch_wrote_one_offset_twice() -> None:
    other = "0 leader 1000\n5 topic u\n6 noop"
    assert differ(same(GOOD, broker_1=other)) == [
        sentence(
            """
            at metadata offset 5 of controller epoch 1, broker-1 has a TopicRecord, and
            controller-1 has a TopicRecord
            """
        )
    ]


def test_records_of_another_epoch_that_were_never_committed_may_differ() -> None:
    cut_off = "0 leader 1000\n5 leader 1002 epoch 2\n6 topic u epoch 2"
    assert not differ(same(GOOD.replace("5 topic t", "5 topic t epoch 3"), controller_3=cut_off))


# Two of three lost what had been decided: offsets 5 and 6 were written again at 20 s.
AGAIN = """
    0 leader 1000
    5 leader 1001 epoch 2 at 20000
    6 noop epoch 2 at 20100
    90 noop epoch 2 at 30000
"""
LOST = {"controller_2": AGAIN, "controller_3": AGAIN}


def test_what_a_broker_had_applied_is_gone() -> None:
    assert differ(same(GOOD, **LOST), applied((9812, "broker-2", 6))) == [
        sentence(
            """
            broker-2 had applied metadata offset 6 when its heartbeat arrived at 9.812 s,
            and the record that the quorum has at offset 6 was appended no earlier than
            19.980 s
            """
        )
    ]
    assert not differ(same(GOOD, **LOST), applied((20200, "broker-2", 6)))
    assert not differ(same(GOOD, **LOST), applied((20050, "broker-2", 6)))  # clocks may differ
    assert not differ(same(GOOD, **LOST), applied((9812, "broker-2", 4)))


def test_the_quorums_log_goes_on_in_time_and_ends_below_what_was_applied() -> None:
    assert differ(same(GOOD, **LOST), applied((9812, "broker-2", 500)))
    assert not differ(same(GOOD), applied((9812, "broker-2", 500)))  # the log ends before that


def test_a_broker_keeps_another_record_than_the_quorum_where_it_had_applied_it() -> None:
    mine = "0 leader 1000\n5 leader 1002 epoch 2\n6 topic u epoch 2"
    log = same(GOOD.replace("5 topic t", "5 topic t epoch 3"), broker_2=mine)
    registered = "at 100 broker-2 register -> ok 3 at 110"
    beat = applied((9000, "broker-2", 6))
    assert differ(log, beat, frames=registered) == [
        sentence(
            """
            broker-2 had applied metadata offset 6 at 9.000 s; at offset 5 it has a
            LeaderChangeMessage of controller epoch 2, and the quorum a TopicRecord of
            controller epoch 3
            """
        )
    ]
    assert not differ(log, applied((9000, "broker-2", 4)), frames=registered)
    assert not differ(log, beat, frames=registered.replace("at 1", "at 91"))  # another life


def test_an_acknowledged_creation_is_not_in_the_log() -> None:
    assert differ(same(GOOD), writes=created("id-u", 1000))
    assert not differ(same(GOOD), writes=created("id-t", 1000))
    assert not differ(same(GOOD), writes=created("id-u", 8999))
