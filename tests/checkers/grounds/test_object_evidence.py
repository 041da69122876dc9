"""Operations on objects, counted by their use and by the faults during which they were called."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.grounds.object_evidence import tally_of
from fencepost.checkers.grounds.operations import FaultWindow
from fencepost.checkers.rows import OPEN_NS

SECOND = 1_000_000_000

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["read", "cas", "final-read"]),
        st.sampled_from(["ok", "fail", "info"]),
        st.integers(0, 12 * SECOND),
    ),
    max_size=12,
)
WINDOWS = st.lists(
    st.tuples(
        st.sampled_from(["kill", "pause"]),
        st.integers(0, 10 * SECOND),
        st.sampled_from([0, 3 * SECOND, None]),
    ),
    max_size=5,
)
USES = {"read": "read", "cas": "write"}


@given(OPERATIONS, WINDOWS)
def test_it_counts_what_is_ok_and_what_of_it_was_called_during_each_kind_of_fault(
    operations: list[tuple[str, str, int]], spans: list[tuple[str, int, int | None]]
) -> None:
    windows = [
        FaultWindow(
            fault=number,
            kind=kind,
            effect_ns=begin,
            end_ns=OPEN_NS if length is None else begin + length,
        )
        for number, (kind, begin, length) in enumerate(spans)
    ]
    columns = [list(column) for column in zip(*operations, strict=True)] or [[], [], []]
    types = {"f": pa.string(), "outcome": pa.string(), "call_ns": pa.int64()}
    arrays = [pa.array(c, t) for c, t in zip(columns, types.values(), strict=True)]
    found = tally_of([pa.RecordBatch.from_arrays(arrays, list(types))], windows, USES.get)

    ok = [(f, call) for f, outcome, call in operations if outcome == "ok"]
    assert found.ok == {f: sum(one == f for one, _ in ok) for f in {f for f, _ in ok}}
    for kind in ("kill", "pause"):
        for f, use in USES.items():
            slowly = sum(
                any(
                    one.kind == kind
                    and one.effect_ns <= call <= max(one.end_ns, one.effect_ns + SECOND)
                    for one in windows
                )
                for done, call in ok
                if done == f
            )
            assert found.served.get((kind, use), 0) == slowly
