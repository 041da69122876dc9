"""Reads of the ISR: they go forward on one broker, catch up, and are repeatable where promised."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from metadata_logs import (
    asked,
    describes,
    doubts,
    facts,
    metadata_log,
    never,
    proofs,
    tables,
    wire,
)
from proving import assert_proof, only, source_of

from fencepost.checkers.facts import Judged
from fencepost.checkers.visibility.isr_went_back import isr_reads_that_went_back
from fencepost.checkers.visibility.nonrepeatable_isr import nonrepeatable_isr_reads
from fencepost.checkers.visibility.stale_isr import stale_isr_reads
from fencepost.history.schema import FAULTS

MS = 1_000_000
BEGINNING = """
    0 leader 1000 at 0
    1 register 1 unfenced at 0
    2 register 2 unfenced at 0
    3 feature metadata.version 14 at 0
    4 topic t at 1000
    5 partition t-0 replicas 1,2,3 isr 1,2,3 leader 1 at 1000
"""
LOG = f"""{BEGINNING}
    6 change t-0 isr 1,2 at 3000
    9 change t-0 isr 1,2,3 at 6000
    20 noop at 60000
"""
TOLD = "at 1500 broker-1 heartbeat epoch 1 offset 5 -> ok lowest 4 at 1501"
BOUNDS = facts(metadata_settle_ns=5000 * MS, metadata_age_max_ns=2000 * MS)


def count(judged: Judged) -> int:
    return sum(found.case_count for _, found in judged)


def back(reads: str, log: str = LOG) -> Judged:
    return list(asked(isr_reads_that_went_back, tables(log, describes=describes(reads)), facts()))


def stale(reads: str, log: str = LOG, faults: Sequence[tuple[int, int | None]] = ()) -> Judged:
    broken = [
        {
            "index": index,
            "fault": "pause",
            "targets": ["broker-2"],
            "begin_ns": begin_ms * MS,
            "end_ns": None if end_ms is None else end_ms * MS,
        }
        for index, (begin_ms, end_ms) in enumerate(faults)
    ]
    given = tables(
        log, describes=describes(reads), faults=pa.Table.from_pylist(broken, schema=FAULTS)
    )
    return list(asked(stale_isr_reads, given, BOUNDS))


def nonrepeatable(reads: str, log: str = LOG, frames: str = TOLD) -> Judged:
    return list(
        asked(nonrepeatable_isr_reads, tables(log, frames, describes=describes(reads)), facts())
    )


WENT_BACK = """
    broker-1 showed t-0 leader 1 isr 1,2 at 4000..4010
    broker-1 showed t-0 leader 1 isr 1,2,3 at 5000..5010
"""


def test_a_broker_that_shows_an_older_isr_than_before_is_found() -> None:
    judged = back(WENT_BACK)
    assert_proof(
        only(proofs(judged), "t-0"),
        "(read {old_read}), which is of metadata offset {old_metadata_offset} at most, to one that",
        node="broker-1",
        key="t-0",
        leader=1,
        leader_epoch=0,
        isr="[1, 2]",
        read=0,
        metadata_offset=6,
        return_=4010,
        old_isr="[1, 2, 3]",
        old_read=1,
        old_metadata_offset=5,
        call=5000,
    )
    assert count(judged) == 1


def test_an_isr_that_came_back_is_newer() -> None:
    judged = back("""
        broker-1 showed t-0 leader 1 isr 1,2 at 4000..4010
        broker-1 showed t-0 leader 1 isr 1,2,3 at 7000..7010
    """)
    assert not never(judged)
    assert count(judged) == 1


def test_what_a_read_tells_of_its_offset_decides_between_equal_versions() -> None:
    judged = back("""
        broker-1 showed t-0 leader 1 isr 1,2 offset 6 at 4000..4010
        broker-1 showed t-0 leader 1 isr 1,2,3 offset 5 at 7000..7010
    """)
    assert list(never(judged)) == ["t-0"]


def test_an_offset_is_not_believed_against_what_was_shown() -> None:
    judged = back("""
        broker-1 showed t-0 leader 1 isr 1,2 offset 6 at 4000..4010
        broker-1 showed t-0 leader 1 isr 1,2,3 offset 6 at 5000..5010
    """)
    assert list(never(judged)) == ["t-0"]


def test_reads_that_overlap_are_right() -> None:
    judged = back("""
        broker-1 showed t-0 leader 1 isr 1,2 at 4000..5005
        broker-1 showed t-0 leader 1 isr 1,2,3 at 5000..5010
    """)
    assert not never(judged)
    assert count(judged) == 0


def test_a_broker_that_started_again_is_another_one() -> None:
    anew = LOG.replace("9 change", "7 register 1 incarnation b at 4500\n 9 change")
    assert not never(back(WENT_BACK, anew))
    same = LOG.replace("1 register 1", "1 register 1 incarnation b").replace(
        "9 change", "7 register 1 incarnation b at 4500\n 9 change"
    )
    assert list(never(back(WENT_BACK, same))) == ["t-0"]


def test_a_read_that_failed_shows_nothing() -> None:
    failed = describes(WENT_BACK)
    place = failed.schema.get_field_index("error")
    failed = failed.set_column(place, failed.schema.field(place), pa.array(["NONE", "TIMED_OUT"]))
    judged = list(asked(isr_reads_that_went_back, tables(LOG, describes=failed), facts()))
    assert not never(judged)


def test_what_was_before_a_snapshot_may_have_looked_the_same() -> None:
    log = """
        snapshot 5 topic t at 0
        snapshot 5 register 1 unfenced at 0
        snapshot 5 partition t-0 replicas 1,2,3 isr 1,2 leader 1 at 0
        6 change t-0 isr 1,2,3 at 3000
        7 change t-0 isr 1,2 at 4000
        8 change t-0 isr 1,2,3 leader 1 at 6000
        9 change t-0 isr 1,2 at 7000
        20 noop at 60000
    """
    assert not never(
        back(
            """
            broker-1 showed t-0 leader 1 isr 1,2,3 leader-epoch 0 at 5000..5010
            broker-1 showed t-0 leader 1 isr 1,2 leader-epoch 0 at 5020..5030
            """,
            log.replace("7 change t-0 isr 1,2 at 4000", "7 noop at 4000"),
        )
    )
    judged = back(
        """
        broker-1 showed t-0 leader 1 isr 1,2 leader-epoch 1 at 8000..8010
        broker-1 showed t-0 leader 1 isr 1,2,3 leader-epoch 1 at 9000..9010
        """,
        log,
    )
    assert list(never(judged)) == ["t-0"]


def test_without_a_log_of_record_nothing_is_judged() -> None:
    for judge in (back, stale, nonrepeatable):
        judged = judge(WENT_BACK, metadata_log())
        assert list(doubts(judged)) == ["metadata"]
        assert count(judged) == 0


def test_a_partition_that_never_changed_is_no_case() -> None:
    log = f"{BEGINNING}\n 20 noop at 60000"
    reads = """
        broker-1 showed t-0 leader 1 isr 1,2,3 at 20000..20010
        broker-2 showed t-0 leader 1 isr 1,2,3 at 21000..21010
    """
    for judge in (back, stale, nonrepeatable):
        assert count(judge(reads, log)) == 0


FOR_GOOD = "\n".join(
    f"broker-2 showed t-0 leader 1 isr 1,2 at {at}..{at + 10}" for at in range(12_000, 56_000, 500)
)


def test_a_broker_that_shows_an_old_isr_for_good_is_found_in_88_reads() -> None:
    """Each of them is of the past, none goes back, and no other check compares them."""
    judged = stale(FOR_GOOD)
    ((key, found),) = judged
    assert (key, found.never_count, found.case_count) == ("t-0", 88, 88)
    proof = proofs(judged)["t-0"][0]
    assert_proof(
        proof,
        "had replaced that by {there}, and nothing was broken since {since}",
        node="broker-2",
        key="t-0",
        leader=1,
        isr="[1, 2]",
        read=0,
        call=12_000,
        newer_metadata_offset=9,
        new_leader=1,
        new_leader_epoch=0,
        new_isr="[1, 2, 3]",
        there=6106,
        since=0,
    )
    assert source_of(proof, "new_isr") == "metadata offset 9"
    assert not never(back(FOR_GOOD))


def test_a_broker_may_be_as_old_as_the_run_allows() -> None:
    judged = stale("""
        broker-1 showed t-0 leader 1 isr 1,2 at 8000..8010
        broker-2 showed t-0 leader 1 isr 1,2,3 at 12000..12010
    """)
    assert not never(judged)
    assert count(judged) == 2


def test_nothing_is_held_against_a_broker_while_something_is_broken_or_was_just_now() -> None:
    read = "broker-2 showed t-0 leader 1 isr 1,2 at 20000..20010"
    assert list(never(stale(read, faults=[(2000, 14_900)]))) == ["t-0"]
    for faults in ([(2000, 15_100)], [(2000, None)], [(2000, 5000), (19_900, 19_950)]):
        assert count(stale(read, faults=faults)) == 0
    assert count(stale(read, faults=[(1000, 16_000), (2000, 3000)])) == 0


def test_a_broker_on_zookeeper_knows_nothing_of_what_waits_behind_a_slow_request() -> None:
    """One request is under way; what comes behind waits for its answer, on a busy machine long."""
    told = "at {} broker-1 to broker-2 updates epoch 2 for 33 -> ok at {}"
    on_zookeeper = replace(BOUNDS, node_ids={"broker-1": 1, "broker-2": 2, "zookeeper-1": 101})

    def found(begin_ms: int, end_ms: int) -> int:
        shown = describes("broker-2 showed t-0 leader 1 isr 1,2 at 20000..20010")
        frames = wire(told.format(begin_ms, end_ms))
        log = metadata_log(zookeeper_1=LOG)
        given = tables(log, describes=shown, faults=FAULTS.empty_table(), wire=frames)
        return len(never(asked(stale_isr_reads, given, on_zookeeper)))

    assert found(15_200, 15_300) == 1
    assert found(12_000, 14_900) == 1
    assert found(12_000, 15_100) == 0
    assert found(19_000, 30_000) == 0


def test_a_fenced_broker_is_held_to_no_age() -> None:
    read = "broker-2 showed t-0 leader 1 isr 1,2 at 20000..20010"
    for fenced in ("10 fence 2 at 7000", "10 fence 2 at 7000\n 11 unfence 2 at 16000"):
        assert count(stale(read, LOG.replace("20 noop", f"{fenced}\n 20 noop"))) == 0
    back_in_time = "10 fence 2 at 7000\n 11 unfence 2 at 14000"
    assert never(stale(read, LOG.replace("20 noop", f"{back_in_time}\n 20 noop")))


def test_a_run_without_any_bound_judges_no_age() -> None:
    assert not list(asked(stale_isr_reads, tables(LOG, describes=describes(FOR_GOOD)), facts()))


TWO_BROKERS = """
    broker-1 showed t-0 leader 1 isr 1,2 at 4000..4010
    broker-2 showed t-0 leader 1 isr 1,2,3 at 4020..4030
"""


def test_reads_through_two_brokers_that_go_back_are_found_where_they_are_repeatable() -> None:
    judged = nonrepeatable(TWO_BROKERS)
    assert_proof(
        only(proofs(judged), "t-0"),
        "{old_node}, unfenced, showed {key} with",
        node="broker-1",
        isr="[1, 2]",
        read=0,
        metadata_offset=6,
        return_=4010,
        old_node="broker-2",
        old_isr="[1, 2, 3]",
        old_read=1,
        old_metadata_offset=5,
        call=4020,
    )
    assert count(judged) == 1


def test_reads_through_two_brokers_that_agree_are_repeatable() -> None:
    judged = nonrepeatable(TWO_BROKERS.replace("isr 1,2,3", "isr 1,2"))
    assert not never(judged)
    assert count(judged) == 1


def test_reads_are_not_repeatable_where_no_broker_is_told_the_lowest_offset() -> None:
    assert not nonrepeatable(TWO_BROKERS, frames="")
    early = TOLD.replace("lowest 4", "lowest 2")
    assert not nonrepeatable(TWO_BROKERS, frames=early)


def test_reads_before_the_lowest_offset_was_told_need_not_be_repeatable() -> None:
    late = TOLD.replace("1500", "4015").replace("1501", "4016")
    assert count(nonrepeatable(TWO_BROKERS, frames=late)) == 0


def test_a_lowered_level_ends_the_promise() -> None:
    lowered = LOG.replace("6 change", "6 feature metadata.version 8 at 2000\n 7 change")
    assert count(nonrepeatable(TWO_BROKERS, lowered)) == 0


def test_a_fenced_broker_promises_no_repeatable_reads() -> None:
    fenced = LOG.replace("6 change", "6 fence 2 at 2000\n 7 change")
    assert count(nonrepeatable(TWO_BROKERS, fenced)) == 0
