"""A6: what no frame shows proves something only if no frame is missing."""

from dataclasses import replace

import pyarrow as pa
import pytest
from metadata_logs import ON_ZOOKEEPER, facts, metadata_log, wire

from fencepost.checkers.catalogue import CATALOGUE
from fencepost.checkers.check import _without_tape
from fencepost.checkers.facts import Facts
from fencepost.checkers.grounds.whole_tape import NAME, whole_tape
from fencepost.checkers.sources import source_of
from fencepost.checkers.verdict import CheckResult, Validity

MS = 1_000_000
S = 1_000 * MS
RUN = facts(healed_ns=20 * S, end_ns=30 * S)
LOG = "1 register 1 at 1000\n99 noop at 30000"
BEATS = "\n".join(
    f"at {at} broker-1 beats as 1 epoch 1 -> ok at {at + 1}" for at in range(900, 31_000, 500)
)


def tape() -> pa.Table:
    """Heartbeats from before the first registration until the end of the run."""
    return numbered(wire(BEATS))


def numbered(frames: pa.Table) -> pa.Table:
    """The frames numbered as the proxy does, one row a frame."""
    at = frames.schema.get_field_index("frame")
    numbers = pa.array(range(frames.num_rows), pa.int64())
    return frames.set_column(at, frames.schema.field(at), numbers)


def said(frames: pa.Table, *, log: str = LOG, run: Facts = RUN) -> str:
    batches = pa.Table.from_batches(frames.to_batches(max_chunksize=7), schema=frames.schema)
    judged = whole_tape(source_of(batches), source_of(metadata_log(log)), run)
    assert (judged.validity is Validity.VALID) is (judged.reason == "")
    return judged.reason


def rows(frames: pa.Table, *places: int) -> pa.Table:
    return frames.take(list(places))


def changed(frames: pa.Table, place: int, column: str, value: int | str) -> pa.Table:
    values = frames[column].to_pylist()
    values[place] = value
    at = frames.schema.get_field_index(column)
    return frames.set_column(at, frames.schema.field(at), pa.array(values, frames[column].type))


def test_a_whole_tape_is_a_case_a_frame() -> None:
    frames = tape()
    judged = whole_tape(source_of(frames), source_of(metadata_log(LOG)), RUN)
    assert (judged.validity, judged.case_count) == (Validity.VALID, frames.num_rows)
    assert whole_tape(source_of(frames), None, RUN).validity is Validity.VALID
    # A row that is there twice says nothing false.
    assert said(rows(frames, *range(5), 4, *range(5, frames.num_rows))) == ""


@pytest.mark.parametrize("place", [1, 6, 7, 13, 14, 50])
def test_a_frame_that_is_missing_leaves_a_hole(place: int) -> None:
    frames = tape()
    kept = [row for row in range(frames.num_rows) if row != place]
    assert "are missing" in said(rows(frames, *kept))


def test_a_tape_that_begins_late_has_lost_its_beginning() -> None:
    frames = tape()
    assert "behind frame -1" in said(frames.slice(4))
    # Numbered anew it is still younger than the first registration.
    assert "a broker had registered" in said(numbered(frames.slice(2)))


def test_a_tape_that_ends_early_has_lost_its_end() -> None:
    frames = tape()
    until = frames["time_ns"].to_numpy()
    assert "healing went on" in said(frames.slice(0, int((until < 19 * S).sum())))
    assert "the run went on until" in said(frames.slice(0, int((until < 24 * S).sum())))


def test_a_tape_that_ends_before_the_log_of_a_run_without_an_end_has_lost_its_end() -> None:
    frames, cut = tape(), facts(healed_ns=None, end_ns=None)
    assert said(frames, run=cut) == ""
    assert "the metadata log goes on until 29.870 s" in said(frames.slice(0, 50), run=cut)


def test_a_tape_that_ends_before_the_last_read_has_lost_its_end() -> None:
    """Within the 5 s in which nodes may end: a lease of 3 s would seem to be over."""
    frames = tape()
    until = frames["time_ns"].to_numpy()
    short = frames.slice(0, int((until < 26 * S).sum()))
    log = source_of(metadata_log(LOG))
    assert whole_tape(source_of(short), log, RUN).reason == ""
    assert whole_tape(source_of(frames), log, RUN, read_ns=30 * S).reason == ""
    judged = whole_tape(source_of(short), log, RUN, read_ns=30 * S)
    assert "a broker answered a read at 30.000 s" in judged.reason


def test_on_zookeeper_the_end_counts_where_brokers_send_heartbeats() -> None:
    facts = replace(ON_ZOOKEEPER, healed_ns=20 * S, end_ns=30 * S)
    beats = tape().slice(0, 40)
    assert set(beats["api"].to_pylist()) == {"MetadataHeartbeat"}
    assert "healing went on until" in whole_tape(source_of(beats), None, facts).reason
    at = beats.schema.get_field_index("api")
    others = pa.array(["UpdateMetadata"] * len(beats))
    silent = beats.set_column(at, beats.schema.field(at), others)
    assert whole_tape(source_of(silent), None, facts).validity is Validity.VALID


def test_nodes_of_other_systems_may_have_nothing_to_say_at_the_end() -> None:
    frames = tape().slice(0, 40)
    at = frames.schema.get_field_index("api")
    others = pa.array(["FetchData"] * len(frames))
    cut = source_of(frames.set_column(at, frames.schema.field(at), others))
    assert "healing went on until" in whole_tape(cut, None, RUN).reason
    alone = replace(RUN, node_ids={"server-1": 1, "server-2": 2})
    assert whole_tape(cut, None, alone).validity is Validity.VALID


def test_rows_are_in_their_order_and_times_are_possible() -> None:
    frames = tape()
    assert "are missing" in said(rows(frames, 0, 2, 1, *range(3, frames.num_rows)))
    # What waited behind a held frame arrived before those that were taken before it.
    assert said(changed(frames, 30, "time_ns", 5)) == ""
    assert "before it had arrived" in said(changed(frames, 30, "forwarded_ns", 5))


def test_what_rests_on_a_whole_tape_is_unknown_without_it() -> None:
    resting = {entry.name for entry in CATALOGUE if NAME in entry.rests_on}
    assert {"unfetched-epoch", "shared-identity", "served-while-fenced"} <= resting
    found = CheckResult(check="fencing-too-late", validity=Validity.INVALID, reason="1 found")
    told = _without_tape(found, on_zookeeper=False)
    assert told.validity is Validity.UNKNOWN
    assert told.reason.endswith("what was found proves nothing: 1 found")
    other = CheckResult(check="stale-epoch-join", validity=Validity.INVALID, reason="1 found")
    assert _without_tape(other, on_zookeeper=False) == other
    # A request names no version there: an old one may stand in for one that is missing.
    assert _without_tape(other, on_zookeeper=True).validity is Validity.UNKNOWN


def test_a_connection_has_one_pair_of_parties() -> None:
    elsewhere = changed(tape(), 20, "target", "controller-2")
    assert "is of several parties" in said(elsewhere)


def test_the_items_of_a_frame_have_one_head() -> None:
    frames = changed(tape(), 5, "frame", 4)
    frames = changed(frames, 5, "item", 1)
    for place in range(6, frames.num_rows):
        frames = changed(frames, place, "frame", place - 1)
    assert "the items of frame 4 have several heads" in said(frames)


def test_an_answer_has_a_request_if_such_requests_are_always_on_the_tape() -> None:
    frames = tape()
    assert frames["direction"][11].as_py() == "response"
    alone = changed(frames, 11, "correlation_id", 4711)
    assert "frame 11 answers a request that is not there" in said(alone)
    # Of Fetches a rule may concern the answer alone.
    both = changed(changed(alone, 10, "api", "Fetch"), 11, "api", "Fetch")
    assert said(both) == ""
