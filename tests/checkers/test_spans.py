"""Spans of time against a slow version that asks every moment."""

from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.spans import Span, common, outside

_END = 20
_SPAN = st.tuples(st.integers(0, _END), st.integers(1, 6)).map(
    lambda one: Span(from_ns=one[0], until_ns=one[0] + one[1])
)
_SPANS = st.lists(_SPAN, max_size=4)


def moments(spans: list[Span]) -> set[int]:
    return {moment for span in spans for moment in range(span.from_ns, span.until_ns)}


@given(spans=_SPANS)
def test_what_is_outside_is_all_that_the_spans_leave_over(spans: list[Span]) -> None:
    assert moments(list(outside(spans, until_ns=_END))) == set(range(_END)) - moments(spans)


@given(lists=st.lists(_SPANS, min_size=1, max_size=3))
def test_what_is_common_is_in_a_span_of_each_list(lists: list[list[Span]]) -> None:
    # The spans outside some others are disjoint and by time.
    disjoint = [list(outside(spans, until_ns=_END)) for spans in lists]
    shared = moments(list(common(*disjoint)))
    assert shared == set.intersection(*map(moments, disjoint))
