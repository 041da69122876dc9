import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from test_report_timeline import SECOND, batch_of, of_records, operations

from fencepost.history.operation import F, Outcome
from fencepost.report.faults import FaultSpan
from fencepost.report.functions import OF_RECORDS
from fencepost.report.tally import TallyFold

END_NS = 40 * SECOND

Row = tuple[F, Outcome, int, int | None, int]


def span(index: int, begin_ns: int, effect_ns: int | None, end_ns: int | None) -> FaultSpan:
    return FaultSpan(
        index=index,
        kind="kill",
        targets=("broker-1",),
        begin_ns=begin_ns,
        effect_ns=effect_ns,
        end_ns=end_ns,
        evidence="",
        heal_evidence="",
    )


spans = st.lists(
    st.tuples(st.integers(0, 20 * SECOND), st.integers(0, SECOND), st.integers(0, 20 * SECOND)),
    max_size=6,
).map(lambda rows: [span(i, a, a + b, a + b + c) for i, (a, b, c) in enumerate(rows)])


@given(operations, spans)
def test_grounds_are_the_calls_that_succeeded_while_a_fault_was_in_effect(
    rows: list[Row], faults: list[FaultSpan]
) -> None:
    fold = TallyFold(faults, OF_RECORDS, run_end_ns=END_NS)
    fold.add(of_records(batch_of(rows)))
    for fault in faults:
        assert fault.effect_ns is not None
        assert fault.end_ns is not None
        during = [
            f
            for f, outcome, call_ns, _, record_count in rows
            if outcome is Outcome.OK and record_count and fault.effect_ns <= call_ns <= fault.end_ns
        ]
        grounds = fold.done().grounds[fault.index]
        assert grounds.writes == during.count(F.SEND)
        assert grounds.reads == during.count(F.POLL)


@given(operations)
def test_the_counts_add_up(rows: list[Row]) -> None:
    fold = TallyFold([], OF_RECORDS, run_end_ns=END_NS)
    fold.add(of_records(batch_of(rows)))
    tally = fold.done()
    assert tally.operation_count == len(rows)
    for (f, outcome), count in tally.counts.items():
        assert count == sum(row[:2] == (f, outcome) for row in rows)


def test_a_fault_without_effect_has_no_grounds() -> None:
    fold = TallyFold([span(0, 0, None, SECOND)], OF_RECORDS, run_end_ns=END_NS)
    assert fold.done().grounds == {}


def test_a_fault_that_never_healed_lasts_to_the_end() -> None:
    fold = TallyFold([span(0, 0, SECOND, None)], OF_RECORDS, run_end_ns=END_NS)
    fold.add(of_records(batch_of([(F.SEND, Outcome.OK, 39 * SECOND, 5, 1)])))
    assert fold.done().grounds[0].writes == 1


def test_errors_are_counted_by_name_and_what_never_ended_has_none() -> None:
    batch = batch_of([(F.SEND, Outcome.INFO, 0, 1, 1)] * 3 + [(F.POLL, Outcome.FAIL, 0, 1, 0)])
    names = pa.array(["_MSG_TIMED_OUT", "_MSG_TIMED_OUT", None, "_TRANSPORT"])
    batch = batch.set_column(batch.schema.get_field_index("error"), "error", names)
    fold = TallyFold([], OF_RECORDS, run_end_ns=END_NS)
    fold.add(of_records(batch))
    found = [(e.error, e.f, e.outcome, e.count) for e in fold.done().errors]
    assert found == [
        ("_MSG_TIMED_OUT", F.SEND, Outcome.INFO, 2),
        ("", F.SEND, Outcome.INFO, 1),
        ("_TRANSPORT", F.POLL, Outcome.FAIL, 1),
    ]
