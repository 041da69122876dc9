"""C10 and D17 along the way: where a log was seen to end, against what had been acknowledged."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metadata_logs import FACTS, asked, case_count, metadata_log, never, proofs, tables, wire
from proving import assert_proof, facts_of_proof
from proving import source_of as told_by
from replica_disks import disks, faults, sends

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.log_ends import HighestAcknowledged, fetched_ends
from fencepost.checkers.replicas.sends import AcknowledgedSends
from fencepost.checkers.replicas.truncated import truncated_replicas
from fencepost.checkers.replicas.unsafe_candidate import unsafe_candidates
from fencepost.checkers.sources import source_of

LOG = """
    3 register 1 unfenced
    4 register 2 unfenced
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    40 change t-0 leader 2
    90 noop
"""
SENDS = "17@0 at 1000..1100\n18@1 at 2000..2100\n"
LOST = SENDS + "19@1 at 5000..5100"
KEPT = SENDS + "19@2 at 5000..5100"
FETCHED = "at 5000 broker-1 to broker-2 fetches t-0 epoch 3 leader-epoch 1 from 1 -> nothing"
Event = tuple[str, str, int]


def given_tables(acknowledged: str, log: str, frames: str, *events: Event) -> dict[str, pa.Table]:
    """All that the two checks read; the disks hold nothing that could be judged in the end."""
    records = sends(acknowledged)
    return tables(log, **disks(""), records=records, wire=wire(frames), faults=faults(*events))


def unsafe(
    acknowledged: str = SENDS, log: str = LOG, frames: str = "", facts: Facts = FACTS
) -> tuple[list[Proof], int]:
    """What is said of candidates, and how many cases there were."""
    judged = list(asked(unsafe_candidates, given_tables(acknowledged, log, frames), facts))
    return proofs(judged).get("t-0", []), case_count(judged)


def cut(
    acknowledged: str = SENDS, log: str = LOG, frames: str = "", *events: Event
) -> tuple[list[Proof], int]:
    """What is said of truncations, and how many cases there were."""
    judged = list(
        asked(truncated_replicas, given_tables(acknowledged, log, frames, *events), FACTS)
    )
    return proofs(judged).get("t-0", []), case_count(judged)


def test_a_leader_that_takes_a_record_below_an_acknowledged_one_lacks_one_of_them() -> None:
    (proof,), cases = unsafe(LOST)
    assert_proof(
        proof,
        "No log holds both, and leader {leader} of leader epoch {leader_epoch}, in office then",
        value=18,
        operation=1,
        offset=1,
        return_=2100,
        late_value=19,
        late_operation=2,
        call=5000,
        late_offset=1,
        late_return=5100,
        leader=2,
        leader_epoch=1,
        metadata_offset=40,
    )
    assert told_by(proof, "late_value") == "operation 2"
    assert cases == 2  # each leader
    assert unsafe(KEPT) == ([], 2)


def test_a_send_that_was_called_before_the_election_tells_of_the_leader_at_its_return() -> None:
    (proof,), _ = unsafe(SENDS + "19@1 at 3000..5100")
    assert_proof(proof, "in office then", leader=2, leader_epoch=1)
    # The leader at 4.050 s is not known: the clocks are not that sharp.
    assert unsafe(SENDS + "19@1 at 3000..4050") == ([], 1)


def test_it_had_cut_it_off_if_it_had_been_in_the_isr() -> None:
    (proof,), cases = cut(LOST)
    assert_proof(
        proof,
        "had been in the ISR all through that send, and no fault had changed its disk since",
        value=18,
        known_offset=1,
        operation=1,
        leader=2,
        taken=19,
        end=1,
        leader_epoch=1,
        taking=2,
        broker_id=2,
    )
    assert cases == 1
    assert cut(KEPT) == ([], 1)
    joined = LOG.replace("isr 1,2 leader 1", "isr 1 leader 1") + "91 noop"
    assert cut(LOST, joined.replace("40 change", "39 change t-0 isr 1,2\n40 change")) == ([], 0)


def test_the_same_leader_that_goes_on_in_the_same_epoch_lacked_it_too() -> None:
    again = SENDS + "19@2 at 2200..2300\n20@1 at 3000..3100"
    (proof,), cases = unsafe(again)
    assert_proof(proof, "in office then", leader=1, leader_epoch=0)
    assert cases == 1


def test_a_send_without_an_end_or_that_overlaps_proves_nothing() -> None:
    open_ = given_tables(SENDS, LOG, "")
    open_["records"] = pa.concat_tables(
        [open_["records"], sends("19@1 at 5000..5100", outcome="info")]
    )
    assert not never(asked(unsafe_candidates, open_, FACTS))
    assert unsafe("17@0 at 1000..1100\n18@2 at 4500..5200\n19@1 at 5000..5100") == ([], 1)
    assert not cut(SENDS + "19@1 at 3900..4500")[0]  # an old leader may have taken it


WIDE = """
    3 register 1 unfenced
    4 register 2 unfenced
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    7 partition t-1 replicas 1,2 isr 1,2 leader 1
    90 noop
"""


def test_the_tape_is_read_once_however_many_partitions_there_are() -> None:
    fetch = "at 5000 broker-2 to broker-1 fetches t-{0} epoch 4 leader-epoch 0 from {0} -> nothing"
    tape = source_of(wire("\n".join(fetch.format(one) for one in (0, 1))))
    reads = []

    def counted(columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        reads.append(columns)
        return tape(columns)

    seen = MetadataView(run=FACTS, metadata_log=metadata_log(WIDE))
    ends = {
        one.key: [end.offset for end in fetched_ends(counted, one, seen.brokers, FACTS)]
        for one in seen.histories()
    }
    assert ends == {"t-0": [0], "t-1": [1]}
    assert len(reads) == 1


def test_a_member_of_the_isr_fetches_from_below_an_acknowledged_record() -> None:
    (proof,), cases = unsafe(frames=FETCHED)
    assert_proof(
        proof,
        "{source} fetched from offset {end} (frame {frame}, in leader epoch {leader_epoch}), betw",
        source="broker-1",
        end=1,
        frame=0,
        leader_epoch=1,
        after=3896,
        by=5000,
        value=18,
        broker_id=1,
        key="t-0",
        isr="[1, 2]",
        leader=2,
        metadata_offset=40,
    )
    assert told_by(proof, "end") == "frame 0"
    assert cases == 2
    assert unsafe(frames=FETCHED.replace("from 1", "from 2")) == ([], 2)
    assert unsafe(SENDS.replace("2100", "3950"), frames=FETCHED) == ([], 1)  # acknowledged too late


def test_who_is_outside_the_isr_at_any_time_may_lack_what_he_did_not_have() -> None:
    out = LOG + "91 noop"
    assert unsafe(log=out.replace("leader 2", "isr 2 leader 2"), frames=FETCHED) == ([], 1)
    late = out.replace("90 noop", "48 change t-0 isr 2\n90 noop")
    assert unsafe(log=late, frames=FETCHED) == ([], 1)
    # He had it nevertheless, and has cut it.
    assert len(cut(log=late, frames=FETCHED)[0]) == 1


def test_an_eligible_leader_outside_the_isr_lacks_nothing() -> None:
    elr = LOG.replace("leader 2", "isr 2 elr 1 leader 2")
    assert len(unsafe(log=elr, frames=FETCHED)[0]) == 1


@pytest.mark.parametrize(
    "frame",
    [
        FETCHED.replace(" leader-epoch 1", "").replace("epoch 3", "epoch 77"),
        FETCHED.replace("leader-epoch 1", "leader-epoch 9").replace("epoch 3", "epoch 77"),
        FETCHED.replace("t-0", "u-0"),
        FETCHED.replace("t-0", "t-1"),
        FETCHED.replace("epoch 3", "epoch unread"),
    ],
)
def test_a_fetch_without_an_earliest_time_proves_nothing(frame: str) -> None:
    assert unsafe(frames=frame) == unsafe()
    assert cut(frames=frame) == ([], 0)


def test_the_registration_that_a_fetch_names_says_since_when_it_can_be() -> None:
    anew = LOG + "91 noop"
    log = anew.replace("90 noop", "45 register 1\n90 noop")
    frame = FETCHED.replace("epoch 3", "epoch 45").replace(" leader-epoch 1", "")
    later = SENDS + "19@2 at 4150..4250"
    (proof,), _ = cut(later, log, frame.replace("from 1", "from 2"))
    assert_proof(proof, "between {after} and {by}", value=19, after=4395.5, by=5000)


def test_what_a_fault_took_from_the_disk_was_not_cut_but_a_candidate_lacks_it() -> None:
    assert len(cut(SENDS, LOG, FETCHED)[0]) == 1
    assert cut(SENDS, LOG, FETCHED, ("wipe", "broker-1", 3000)) == ([], 0)
    assert cut(SENDS, LOG, FETCHED, ("wipe", "broker-1", 4500)) == ([], 0)
    # Whatever was done to it later, it had cut the record before.
    assert len(cut(SENDS, LOG, FETCHED, ("wipe", "broker-1", 6000))[0]) == 1
    assert len(cut(SENDS, LOG, FETCHED, ("wipe", "broker-2", 3000))[0]) == 1
    assert len(unsafe(frames=FETCHED)[0]) == 1


def test_who_was_taken_off_the_partition_may_have_deleted_its_log() -> None:
    moved = LOG.replace(
        "40 change", "30 change t-0 replicas 2,3 isr 2\n35 change t-0 replicas 1,2\n40 change"
    )
    assert cut(SENDS, moved, FETCHED) == ([], 0)
    # In the ZooKeeper generation no version is without it: it is only seen to be added again.
    added = "30 change t-0 isr 2 removing 1\n35 change t-0 adding 1\n40 change"
    assert cut(SENDS, LOG.replace("40 change", added), FETCHED) == ([], 0)
    assert len(cut(SENDS, LOG.replace("40 change", added.replace("adding 1", "")), FETCHED)[0]) == 1


def test_after_an_unclean_election_and_without_acks_all_records_may_be_gone() -> None:
    unclean = LOG.replace("leader 2", "leader 2 recovering")
    assert unsafe(LOST, unclean) == ([], 2)
    assert cut(LOST, unclean) == ([], 1)
    assert unsafe(LOST, facts=replace(FACTS, acks="1")) == ([], 0)


def test_what_happened_after_the_log_ends_is_not_judged() -> None:
    short = LOG.replace("90 noop", "45 noop")
    longer = short.replace("45", "60")
    assert not unsafe(LOST, short)[0]
    assert not cut(LOST, short)[0]
    assert unsafe(LOST, longer)[0]
    assert cut(LOST, longer)[0]


MOMENTS = st.integers(0, 30)
TAKEN = st.lists(st.tuples(st.integers(0, 6), MOMENTS, st.integers(1, 12)), min_size=1, max_size=12)
"""(offset, call, duration) of acknowledged sends, in units of 250 ms."""
FETCHES = st.lists(st.tuples(MOMENTS, st.integers(0, 6)), max_size=4)
"""(time, offset) of Fetches of broker 1."""
WIPES = st.lists(MOMENTS, max_size=2)


@given(taken=TAKEN, fetches=FETCHES, wipes=WIPES)
def test_sends_in_stretches_are_judged_as_all_of_them_at_once(
    taken: list[tuple[int, int, int]], fetches: list[tuple[int, int]], wipes: list[int]
) -> None:
    acknowledged = "\n".join(
        f"{value}@{offset} at {250 * call}..{250 * (call + duration)}"
        for value, (offset, call, duration) in enumerate(taken)
    )
    frames = "\n".join(
        f"at {250 * moment} broker-1 to broker-2 fetches t-0 epoch 3 from {offset} -> nothing"
        for moment, offset in sorted(fetches)
    )
    events = [("wipe", "broker-1", 250 * moment) for moment in wipes]

    def judged() -> tuple[object, ...]:
        lacking, cases = unsafe(acknowledged, LOG, frames)
        told = [facts_of_proof(proof) for proof in lacking]
        # Of a send that was overtaken, what had been acknowledged before may be another one.
        of_sends = [one["late_operation"] for one in told if "late_operation" in one]
        of_fetches = [one for one in told if "late_operation" not in one]
        of_disks, cut_cases = cut(acknowledged, LOG, frames, *events)
        return of_sends, of_fetches, cases, list(map(facts_of_proof, of_disks)), cut_cases

    at_once = judged()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fencepost.checkers.replicas.sends.SENDS_AT_ONCE", 2)
        assert judged() == at_once


_SENDS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8)


@given(acknowledged=_SENDS, moments=st.lists(st.integers(0, 10), max_size=5))
def test_the_highest_offset_before_a_moment_is_that_of_a_slow_search(
    acknowledged: list[tuple[int, int]], moments: list[int]
) -> None:
    offset, return_ns = (
        np.array([one[place] for one in acknowledged], dtype=np.int64) for place in (0, 1)
    )
    of_key = AcknowledgedSends(
        offset=offset, value=offset, operation=offset, call_ns=return_ns, return_ns=return_ns
    )
    places = HighestAcknowledged(of_key).before(np.array(moments, dtype=np.int64)).tolist()
    for moment, place in zip(moments, places, strict=True):
        before = [one for one, returned in acknowledged if returned < moment]
        assert (int(offset[place]) if place >= 0 else None) == max(before, default=None)
        assert place < 0 or return_ns[place] < moment
