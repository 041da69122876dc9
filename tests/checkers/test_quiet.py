"""When nothing was broken: against a look at every fault."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume, example, given
from hypothesis import strategies as st
from metadata_logs import wire

from fencepost.checkers.metadata.rpcs import rpcs
from fencepost.checkers.quiet import CONTROLLER_REQUESTS, long_waits, quiet
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import source_of
from fencepost.history.schema import FAULTS

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


REQUEST = st.tuples(
    st.integers(0, 8),
    st.sampled_from(["tells", "updates"]),
    st.integers(1, 2),
    st.sampled_from(["-> ok at {}", "-> nothing", "-> ok at {} by the proxy"]),
    st.integers(0, 4),
)
"""(time, what it does, connection, how it ends, after how long), in units of 250 ms."""


def _one_at_a_time(tape: pa.Table) -> bool:
    """Return whether each answer has its request before it, and no other of the same number."""
    names = ("connection", "correlation_id", "time_ns", "direction")
    # "request" sorts before "response", so that what is answered at once is in order.
    rows = sorted(zip(*(tape[name].to_pylist() for name in names), strict=True))
    return all(
        rows[place - 1][:2] == row[:2] and rows[place - 1][3] == "request"
        for place, row in enumerate(rows)
        if row[3] != "request"
    )


@given(st.lists(REQUEST, max_size=8))
@example([(0, "tells", 1, "-> ok at {}", 2), (0, "updates", 1, "-> ok at {}", 1)])
def test_long_waits_are_those_of_requests_paired_one_by_one(
    requests: list[tuple[int, str, int, str, int]],
) -> None:
    tape = wire(
        "\n".join(
            f"at {250 * at} broker-1 to broker-2 on {connection} {does} epoch 1 for 2 "
            + end.format(250 * (at + after))
            for at, does, connection, end, after in requests
        )
    )
    # Numbers come again on a connection, as on one of a simulated node.
    place = tape.schema.get_field_index("correlation_id")
    again = pc.bit_wise_and(tape["correlation_id"], pa.scalar(1, tape["correlation_id"].type))
    tape = tape.set_column(place, tape.schema.field(place), again)
    assume(_one_at_a_time(tape))
    slowly = {
        (rpc.asked_ns, rpc.answered_ns)
        for rpc in rpcs(tape, *CONTROLLER_REQUESTS)
        if rpc.answered_ns is not None and rpc.answered_ns - rpc.asked_ns >= 500_000_000
    }
    assert {(one.from_ns, one.until_ns) for one in long_waits(source_of(tape))} == slowly
