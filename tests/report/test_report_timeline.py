import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.history.operation import F, Outcome
from fencepost.history.schema import OPERATIONS
from fencepost.report.functions import OF_RECORDS
from fencepost.report.latencies import Latencies
from fencepost.report.timeline import (
    BIN_COUNT_MAX,
    OperationBlock,
    Timeline,
    TimelineFold,
    bins_for,
    block_of,
)

SECOND = 1_000_000_000
COLUMNS = ["f", "outcome", "call_ns", "return_ns", "record_count", "error"]

operations = st.lists(
    st.tuples(
        st.sampled_from(F),
        st.sampled_from(Outcome),
        st.integers(0, 30 * SECOND),
        st.one_of(st.none(), st.integers(0, 5 * SECOND)),
        st.integers(0, 500),
    ),
    max_size=60,
)


def batch_of(rows: list[tuple[F, Outcome, int, int | None, int]]) -> pa.RecordBatch:
    schema = pa.schema([OPERATIONS.field(name) for name in COLUMNS])
    content = [
        {
            "f": f,
            "outcome": outcome,
            "call_ns": call_ns,
            "return_ns": None if took_ns is None else call_ns + took_ns,
            "record_count": record_count,
            "error": None,
        }
        for f, outcome, call_ns, took_ns, record_count in rows
    ]
    return pa.RecordBatch.from_pylist(content, schema=schema)


def of_records(batch: pa.RecordBatch) -> OperationBlock:
    return block_of(batch, OF_RECORDS)


def of_sends(timeline: Timeline) -> Latencies:
    return timeline.latencies[OF_RECORDS.writes]


@given(st.integers(0, 1_000_000 * SECOND))
def test_bins_cover_any_run_and_are_bounded(end_ns: int) -> None:
    bins = bins_for(end_ns)
    assert 1 <= bins.count <= BIN_COUNT_MAX
    assert bins.width_ns * bins.count >= end_ns
    assert bins.width_ns * (bins.count - 1) <= end_ns


@pytest.mark.parametrize(
    ("seconds", "width_s"),
    [(45, 0.5), (1000, 0.5), (3600, 2), (8 * 3600, 15), (90 * 24 * 3600, 7200)],
)
def test_bins_have_round_widths(seconds: int, width_s: float) -> None:
    assert bins_for(seconds * SECOND).width_s == width_s


@given(operations, st.integers(1, 59))
def test_every_operation_is_counted_once_in_the_bin_of_its_end(
    rows: list[tuple[F, Outcome, int, int | None, int]], cut: int
) -> None:
    bins = bins_for(40 * SECOND)
    fold = TimelineFold(bins, OF_RECORDS)
    fold.add(of_records(batch_of(rows[:cut])))
    fold.add(of_records(batch_of(rows[cut:])))
    timeline = fold.done()
    slow = {key: [0] * bins.count for key in timeline.ended}
    polled = [0] * bins.count
    for f, outcome, call_ns, took_ns, record_count in rows:
        place = (call_ns + (took_ns or 0)) // bins.width_ns
        slow[f, outcome][place] += 1
        if (f, outcome) == (F.POLL, Outcome.OK):
            polled[place] += record_count
    assert {key: list(counts) for key, counts in timeline.ended.items()} == slow
    assert list(timeline.polled_records) == polled


@given(st.lists(st.integers(1_000, 3_600 * SECOND), min_size=1, max_size=200))
def test_quantiles_are_near_the_exact_ones_and_maxima_exact(latencies_ns: list[int]) -> None:
    fold = TimelineFold(bins_for(SECOND), OF_RECORDS)
    rows = [(F.SEND, Outcome.OK, 0, took_ns, 1) for took_ns in latencies_ns]
    fold.add(of_records(batch_of(rows)))
    found = of_sends(fold.done())
    ranked = sorted(latencies_ns)
    for quantile, values in ((0.5, found.p50_ms), (0.99, found.p99_ms)):
        exact_ms = ranked[max(1, int(np.ceil(quantile * len(ranked)))) - 1] / 1e6
        assert values[0] == pytest.approx(exact_ms, rel=0.011)
    assert found.max_ms[0] == ranked[-1] / 1e6


def test_a_stall_shows_where_its_sends_were_called() -> None:
    fold = TimelineFold(bins_for(10 * SECOND), OF_RECORDS)
    fold.add(of_records(batch_of([(F.SEND, Outcome.OK, 2 * SECOND, 5 * SECOND, 1)])))
    timeline = fold.done()
    assert np.flatnonzero(np.isfinite(of_sends(timeline).max_ms)).tolist() == [4]
    assert np.flatnonzero(timeline.ended[F.SEND, Outcome.OK]).tolist() == [14]


def test_only_acknowledged_sends_have_a_latency() -> None:
    fold = TimelineFold(bins_for(10 * SECOND), OF_RECORDS)
    rows = [
        (F.SEND, Outcome.INFO, SECOND, SECOND, 1),
        (F.SEND, Outcome.FAIL, SECOND, SECOND, 1),
        (F.POLL, Outcome.OK, SECOND, SECOND, 1),
    ]
    fold.add(of_records(batch_of(rows)))
    assert np.isnan(of_sends(fold.done()).max_ms).all()


def test_an_operation_outside_of_the_run_counts_at_its_edge() -> None:
    fold = TimelineFold(bins_for(2 * SECOND), OF_RECORDS)
    fold.add(of_records(batch_of([(F.POLL, Outcome.OK, 9 * SECOND, None, 3)])))
    assert fold.done().ended[F.POLL, Outcome.OK].tolist() == [0, 0, 0, 1]


def test_dictionary_encoded_words_mean_the_same() -> None:
    batch = batch_of([(F.POLL, Outcome.INFO, 0, 1, 0), (F.SEND, Outcome.OK, 0, 1, 1)])
    encoded = pa.RecordBatch.from_arrays(
        [
            column.dictionary_encode() if name in ("f", "outcome") else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ],
        names=batch.schema.names,
    )
    assert of_records(encoded).f.tolist() == of_records(batch).f.tolist()
    assert of_records(encoded).outcome.tolist() == of_records(batch).outcome.tolist()
