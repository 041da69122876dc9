"""When nothing was broken: against a look at every fault."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from checkers.quiet import quiet
from checkers.rows import OPEN_NS
from history.schema import FAULTS

SPANS = st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(0, 8))), max_size=6)


def faults(spans: list[tuple[int, int | None]]) -> pa.Table:
    rows = [
        {
            "index": index,
            "fault": "pause",
            "targets": [],
            "begin_ns": begin,
            "end_ns": None if length is None else begin + length,
        }
        for index, (begin, length) in enumerate(spans)
    ]
    return pa.Table.from_pylist(rows, schema=FAULTS)


def slowly(spans: list[tuple[int, int | None]], time_ns: int) -> int:
    """The end of the last fault that had begun by then; OPEN_NS if one goes on."""
    ends = [OPEN_NS if length is None else begin + length for begin, length in spans]
    begun = [end for (begin, _), end in zip(spans, ends, strict=True) if begin <= time_ns]
    last = max(begun, default=0)
    return last if last <= time_ns else OPEN_NS


@given(SPANS)
def test_it_is_quiet_since_the_last_fault_ended(spans: list[tuple[int, int | None]]) -> None:
    times = np.arange(32)
    since = quiet(faults(spans)).since_ns(times)
    assert since.tolist() == [slowly(spans, time_ns) for time_ns in times.tolist()]


def test_the_beginning_of_a_run_counts_as_an_end() -> None:
    assert quiet(faults([])).since_ns(np.array([0, 5])).tolist() == [0, 0]
