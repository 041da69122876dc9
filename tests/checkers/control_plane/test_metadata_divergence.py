"""C7: what counts as different metadata, and what may legally differ."""

from dataclasses import replace

import pyarrow as pa
from metadata_logs import asked, facts, metadata_log, proofs, wire
from proving import assert_proof

from fencepost.checkers.control_plane.metadata_divergence import metadata_divergences
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof
from fencepost.history.cluster_schema import METADATA_OFFSETS
from fencepost.history.request_schema import METADATA_WRITES

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
    of: Facts = THREE,
) -> list[Proof]:
    given = {
        "metadata_log": log,
        "wire": wire(frames),
        "metadata_offsets": applied() if offsets is None else offsets,
        "metadata_writes": METADATA_WRITES.empty_table() if writes is None else writes,
    }
    return proofs(asked(metadata_divergences, given, of)).get("metadata", [])


def same(text: str, **others: str) -> pa.Table:
    return metadata_log(
        **{"controller_1": text, "controller_2": text, "controller_3": text} | others
    )


def test_equal_copies_and_copies_that_end_early_are_no_divergence() -> None:
    assert not differ(same(GOOD, controller_3="0 leader 1000", broker_1=GOOD))


def test_one_epoch_wrote_one_offset_twice() -> None:
    other = "0 leader 1000\n5 topic u\n6 noop"
    (proof,) = differ(same(GOOD, broker_1=other))
    assert_proof(
        proof,
        "at metadata offset {offset} of controller epoch {epoch}",
        offset=5,
        epoch=1,
        node="broker-1",
        other_node="controller-1",
        type="TopicRecord",
    )


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
    (proof,) = differ(same(GOOD, **LOST), applied((9812, "broker-2", 6)))
    assert_proof(
        proof,
        "was appended no earlier than",
        node="broker-2",
        applied=6,
        time=9812,
        decided=6,
        appended=19_979.9,
    )
    assert not differ(same(GOOD, **LOST), applied((20200, "broker-2", 6)))
    assert not differ(same(GOOD, **LOST), applied((20050, "broker-2", 6)))  # clocks may differ
    assert not differ(same(GOOD, **LOST), applied((9812, "broker-2", 4)))


def test_a_broker_that_migrates_counts_batches_where_others_state_an_offset() -> None:
    migrating = replace(THREE, node_ids={**THREE.node_ids, "zookeeper-1": 2001})
    claim = applied((9812, "broker-2", 6))
    assert not differ(same(GOOD, **LOST), claim, of=migrating)
    assert differ(same(GOOD, broker_1="0 leader 1000\n5 topic u\n6 noop"), of=migrating)


def test_the_quorums_log_goes_on_in_time_and_ends_below_what_was_applied() -> None:
    assert differ(same(GOOD, **LOST), applied((9812, "broker-2", 500)))
    assert not differ(same(GOOD), applied((9812, "broker-2", 500)))  # the log ends before that


def test_a_broker_keeps_another_record_than_the_quorum_where_it_had_applied_it() -> None:
    mine = "0 leader 1000\n5 leader 1002 epoch 2\n6 topic u epoch 2"
    log = same(GOOD.replace("5 topic t", "5 topic t epoch 3"), broker_2=mine)
    registered = "at 100 broker-2 register -> ok 3 at 110"
    beat = applied((9000, "broker-2", 6))
    (proof,) = differ(log, beat, frames=registered)
    assert_proof(
        proof,
        "and the quorum a {type_decided}",
        node="broker-2",
        applied_offset=6,
        time=9000,
        metadata_offset=5,
        type="LeaderChangeMessage",
        controller_epoch=2,
        type_decided="TopicRecord",
        controller_epoch_decided=3,
    )
    assert not differ(log, applied((9000, "broker-2", 4)), frames=registered)
    assert not differ(log, beat, frames=registered.replace("at 1", "at 91"))  # another life


def test_an_acknowledged_creation_is_not_in_the_log() -> None:
    assert differ(same(GOOD), writes=created("id-u", 1000))
    assert not differ(same(GOOD), writes=created("id-t", 1000))
    assert not differ(same(GOOD), writes=created("id-u", 8999))
