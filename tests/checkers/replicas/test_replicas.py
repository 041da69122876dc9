"""D16, D17 and C10: replicas against each other, and against what was acknowledged."""

from dataclasses import replace

import pyarrow as pa
import pytest
from metadata_logs import FACTS, asked, case_count, doubts, proofs, tables
from proving import assert_proof
from replica_disks import disks, faults, sends

from fencepost.checkers.disk_faults import DISK_FAULTS, DISK_REFUSALS
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.divergent import divergent_replicas
from fencepost.checkers.replicas.truncated import truncated_replicas
from fencepost.checkers.replicas.unsafe_candidate import unsafe_candidates
from fencepost.history.cluster_schema import REPLICA_RECORDS
from fencepost.nemesis.verbs.registry import FAULTS

LOG = """
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    40 change t-0 isr 2 leader 2
    90 noop
"""
UNCLEAN = LOG.replace("isr 2 leader 2", "isr 2 leader 2 recovering")


def differ(lines: str, log: str = LOG) -> list[Proof]:
    return proofs(asked(divergent_replicas, tables(log, **disks(lines)), FACTS)).get("t-0", [])


def test_replicas_hold_different_records_below_both_high_watermarks() -> None:
    (proof,) = differ("broker-1: 17@0 18@1 19@2 hw 3\nbroker-2: 17@0 28@1:1 29@2:1 hw 3")
    assert_proof(
        proof,
        "hold different records at offsets {first}..{last}",
        node="broker-1",
        other_node="broker-2",
        first=1,
        last=2,
        high_watermark=3,
        other_high_watermark=3,
        value=18,
        leader_epoch=0,
        other_record_value=28,
        other_record_leader_epoch=1,
    )


@pytest.mark.parametrize(
    "other",
    [
        "17@0 18@1 hw 2",
        "17@0 28@1:1 hw 1",  # above the high watermark anything may differ
        "17@0 28@1:1",  # without a high watermark nothing is sure
        "18@1 hw 2 start 1",  # below its log start it holds nothing any more
        "nothing hw 0",
    ],
)
def test_what_may_differ(other: str) -> None:
    assert not differ(f"broker-1: 17@0 18@1 hw 2\nbroker-2: {other}")


def test_a_hole_and_another_leader_epoch_are_differences() -> None:
    assert differ("broker-1: 17@0 18@1 19@2 hw 3\nbroker-2: 17@0 19@2 hw 3")
    assert differ("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 18@1:1 hw 2")


@pytest.mark.parametrize("column", ["digest", "timestamp_ms", "producer_id", "producer_epoch"])
def test_whatever_a_follower_copies_is_compared(column: str) -> None:
    told = disks("broker-1: 17@0 18@1 by 7/0 hw 2\nbroker-2: 17@0 18@1 by 7/0 hw 2")
    rows = told["replica_records"].to_pylist()
    assert not proofs(asked(divergent_replicas, tables(LOG, **told), FACTS))
    rows[-1][column] += 1
    told["replica_records"] = pa.Table.from_pylist(rows, schema=REPLICA_RECORDS)
    (proof,) = proofs(asked(divergent_replicas, tables(LOG, **told), FACTS))["t-0"]
    assert_proof(proof, "hold different records at offset {first}", first=1, value=18)


def test_after_an_unclean_election_replicas_may_differ() -> None:
    lines = "broker-1: 17@0 hw 1\nbroker-2: 18@0:1 hw 1"
    assert differ(lines)
    assert not differ(lines, UNCLEAN)


def test_where_no_log_tells_of_elections_it_is_unknown_whether_replicas_may_differ() -> None:
    given = tables("", **disks("broker-1: 17@0 hw 1\nbroker-2: 18@0:1 hw 1"))
    assert "was an election unclean?" in doubts(asked(divergent_replicas, given, FACTS))["t-0"]
    given = tables("", **disks("broker-1: 17@0 hw 1\nbroker-2: 17@0 hw 1"))
    assert not doubts(asked(divergent_replicas, given, FACTS))


SENDS = "17@0 at 1000..1100\n18@1 at 2000..2100"


def cut(
    lines: str,
    log: str = LOG,
    acknowledged: str = SENDS,
    events: tuple[tuple[str, str, int], ...] = (),
) -> list[Proof]:
    given = tables(log, **disks(lines), records=sends(acknowledged), faults=faults(*events))
    return proofs(asked(truncated_replicas, given, FACTS)).get("t-0", [])


def test_a_replica_that_had_acknowledged_records_and_has_them_no_more_has_cut_them() -> None:
    (proof,) = cut("broker-1: nothing hw 0\nbroker-2: 17@0 18@1 hw 2")
    assert_proof(
        proof,
        "does not hold them, and no fault changed its disk",
        node="broker-1",
        role="led",
        leader_epoch=0,
        isr="[1, 2]",
        metadata_offset=6,
        count=2,
        first=0,
        last=1,
        min=1100,
        max=2100,
        log_end_offset=0,
    )
    assert len(cut("broker-1: 17@0 28@1:1 hw 2\nbroker-2: 17@0 18@1 hw 2")) == 1
    assert not cut("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 18@1 hw 2")


def test_a_replica_that_was_not_in_the_isr_all_through_the_send_need_not_have_had_it() -> None:
    gone = "broker-1: 17@0 18@1 hw 2\nbroker-2: nothing hw 0"
    assert cut(gone)
    out = LOG.replace("40 change t-0 isr 2 leader 2", "9 change t-0 isr 1")
    assert not cut(gone, log=out)
    late = "17@0 at 3850..3950\n18@1 at 4050..4120"
    assert cut("broker-1: nothing\nbroker-2: nothing", acknowledged="17@0 at 3700..3800")
    assert not cut("broker-1: nothing\nbroker-2: nothing", acknowledged=late)  # a change of leader


@pytest.mark.parametrize(
    "lines",
    [
        "broker-1: 17@0 damaged",
        "broker-1: nothing start 2 end 2",
        "broker-2: 17@0 18@1 hw 2",  # the disk of broker-1 was not read
    ],
)
def test_what_could_not_be_read_proves_nothing(lines: str) -> None:
    assert not cut(lines)


def test_what_a_fault_took_from_the_disk_the_replica_did_not_cut() -> None:
    gone = "broker-1: nothing hw 0\nbroker-2: 17@0 18@1 hw 2"
    assert not cut(gone, events=(("wipe", "broker-1", 5000),))
    assert not cut(gone, events=(("rollback", "broker-1", 5000),))
    assert cut(gone, events=(("wipe", "broker-1", 900),))
    assert cut(gone, events=(("wipe", "broker-2", 5000), ("kill", "broker-1", 5000)))


def test_a_replica_that_was_taken_off_the_partition_may_have_deleted_its_log() -> None:
    moved = LOG + "91 change t-0 replicas 2,3\n92 change t-0 replicas 1,2"
    assert not cut("broker-1: nothing hw 0", log=moved)


def test_after_an_unclean_election_records_may_be_cut() -> None:
    assert not cut("broker-1: nothing hw 0", log=UNCLEAN)


def test_without_acks_all_an_acknowledgement_proves_no_copy() -> None:
    given = tables(LOG, **disks("broker-1: nothing"), records=sends(SENDS), faults=faults())
    assert not proofs(asked(truncated_replicas, given, replace(FACTS, acks="1")))


def test_a_value_that_was_sent_twice_proves_no_truncation() -> None:
    twice = sends(f"{SENDS}\n17@5 at 2200..2300")
    given = tables(LOG, **disks("broker-1: nothing"), records=twice, faults=faults())
    assert not proofs(asked(truncated_replicas, given, FACTS))
    assert "twice" in doubts(asked(truncated_replicas, given, FACTS))["t-0"]


def test_without_a_log_of_record_no_truncation_is_judged() -> None:
    given = tables("", **disks("broker-1: nothing"), records=sends(SENDS), faults=faults())
    assert doubts(asked(truncated_replicas, given, FACTS))


def test_a_topic_that_was_created_again_is_a_doubt() -> None:
    again = LOG + "91 delete t\n92 topic t as id-2\n93 partition t-0 replicas 1,2 isr 1,2 leader 1"
    assert not cut("broker-1: nothing hw 0", log=again)
    for log, count in ((again, 2), (LOG.replace("t-0", "u-0").replace("topic t", "topic u"), 0)):
        given = tables(
            log, **disks("broker-1: nothing hw 0"), records=sends(SENDS), faults=faults()
        )
        assert doubts(asked(truncated_replicas, given, FACTS)) == {
            "t-0": f"{count} partitions of the metadata log were called t-0"
        }


def test_every_kind_of_fault_is_known_to_change_disks_or_to_leave_them() -> None:
    harmless = {"kill", "pause", "stop", "restart", "skew", "throttle", "squeeze"}
    assert set(FAULTS) - harmless == DISK_FAULTS | DISK_REFUSALS


def candidates(lines: str, log: str = LOG) -> list[Proof]:
    given = tables(log, **disks(lines), records=sends(SENDS))
    return proofs(asked(unsafe_candidates, given, FACTS)).get("t-0", [])


def test_a_member_of_the_last_isr_lacks_committed_records() -> None:
    (proof,) = candidates("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 hw 1")
    assert_proof(
        proof,
        "below the high watermark {high_watermark}",
        node="broker-2",
        among="ISR",
        key="t-0",
        metadata_offset=40,
        log_end_offset=1,
        high_watermark=2,
        highest_node="broker-1",
    )
    assert not candidates("broker-1: 17@0 18@1 hw 1\nbroker-2: 17@0 hw 1")
    assert not candidates("broker-1: 17@0 hw 1\nbroker-2: 17@0 18@1 hw 2")


def test_an_eligible_leader_outside_the_isr_has_them_too() -> None:
    elr = LOG + "91 change t-0 isr none leader -1 elr 1"
    lines = "broker-1: 17@0 hw 1\nbroker-2: 17@0 18@1 hw 2"
    assert_proof(candidates(lines, elr)[0], "is in the {among} of {key}", among="ELR", key="t-0")


def test_a_disk_without_topic_ids_has_the_partition_of_its_name() -> None:
    of_old = disks("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 hw 1")
    place = of_old["replicas"].schema.get_field_index("topic_id")
    ids = pa.nulls(2, pa.string())
    of_old["replicas"] = of_old["replicas"].set_column(place, "topic_id", ids)
    judged = asked(unsafe_candidates, tables(LOG, **of_old, records=sends(SENDS)), FACTS)
    assert len(proofs(judged)["t-0"]) == 1
    assert not doubts(judged)


def test_after_an_unclean_election_and_of_a_damaged_log_nothing_is_found() -> None:
    lines = "broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 hw 1"
    assert not candidates(lines, UNCLEAN)
    assert not candidates(lines + " damaged")


def test_a_candidate_whose_log_was_not_read_is_a_doubt() -> None:
    both = LOG + "95 change t-0 isr 1,2 at 9600"
    given = tables(both, **disks("broker-1: 17@0 hw 1"), records=sends(SENDS))
    assert doubts(asked(unsafe_candidates, given, FACTS))["t-0"] == (
        "the log of broker 2, a candidate of t-0, could not be read whole"
    )
    whole = disks("broker-1: 17@0 hw 1\nbroker-2: 17@0 hw 1")
    given = tables(both, **whole, records=sends(SENDS))
    assert not doubts(asked(unsafe_candidates, given, FACTS))


def test_a_metadata_log_that_ends_before_the_run_does_not_tell_its_end() -> None:
    lines = "broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 hw 1"
    given = tables(LOG, **disks(lines), records=sends(SENDS), faults=faults())
    for kernel in (unsafe_candidates, truncated_replicas):
        assert proofs(asked(kernel, given, replace(FACTS, end_ns=9_000_000_000)))
        late = replace(FACTS, end_ns=10_000_000_000)
        assert not proofs(asked(kernel, given, late))
        assert "the metadata log ends at 9.109 s" in doubts(asked(kernel, given, late))["t-0"]


EQUAL = "broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 18@1 hw 2"


def test_offsets_below_both_high_watermarks_are_the_cases_of_divergence() -> None:
    def counted(lines: str) -> int:
        return case_count(asked(divergent_replicas, tables(LOG, **disks(lines)), FACTS))

    assert counted(EQUAL) == 2
    assert counted("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 28@1:1 hw 2") == 2
    assert counted("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 18@1 hw 1") == 1
    assert counted("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 18@1") == 0
    assert counted("broker-1: 17@0 18@1 hw 2") == 0


def test_records_that_a_replica_should_still_hold_are_the_cases_of_truncation() -> None:
    def counted(acknowledged: str, lines: str = EQUAL, *events: tuple[str, str, int]) -> int:
        records = sends(acknowledged)
        given = tables(LOG, **disks(lines), records=records, faults=faults(*events))
        return case_count(asked(truncated_replicas, given, FACTS))

    assert counted(SENDS) == 4
    assert counted(SENDS, "broker-1: nothing hw 0\nbroker-2: 17@0 18@1 hw 2") == 4
    assert counted(SENDS, EQUAL, ("wipe", "broker-1", 1500)) == 3
    assert counted(SENDS, "broker-1: 17@0 damaged") == 0
    assert counted("") == 0


def test_members_whose_logs_were_read_are_the_cases_of_candidates() -> None:
    def counted(lines: str) -> int:
        both = LOG + "95 change t-0 isr 1,2 at 9600"
        given = tables(both, **disks(lines), records=sends("17@0 at 1000..1100"))
        return case_count(asked(unsafe_candidates, given, FACTS))

    assert counted(EQUAL) == 2
    assert counted("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 hw 1") == 2
    assert counted("broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 damaged") == 1
    assert counted("") == 0
