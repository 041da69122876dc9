"""The times in which ZooKeeper may have taken no write."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from metadata_logs import metadata_log

from fencepost.checkers.control_plane.inactive_leader import Outages, outages_of
from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.view import MetadataView
from fencepost.history.ensemble_schema import ENSEMBLE

MS = 1_000_000
S = 1_000 * MS


def outages(log: str, *answers: tuple[float, str | None]) -> list[tuple[float, float]]:
    """Return them in seconds."""
    rows = [
        {"asked_ns": 0, "time_ns": int(at * S), "node": "zookeeper-1"}
        | {"serving": mode is not None, "mode": mode, "zxid": 1}
        for at, mode in answers
    ]
    facts = Facts(node_ids={"zookeeper-1": 2001})
    view = MetadataView(run=facts, metadata_log=metadata_log(zookeeper_1=log))
    found = outages_of(view.log, pa.Table.from_pylist(rows, schema=ENSEMBLE), facts)
    return [(since / S, until / S) for since, until in found.spans]


def test_an_outage_is_a_time_without_a_transaction_and_without_a_leader() -> None:
    log = "1 runs-on 1 h1 version 5 at 1000\n2 topic t at 2000\n3 noop at 9000"
    ((since, until),) = outages(log)
    assert (round(since), round(until)) == (2, 9)
    assert outages(log, (4.5, "leader"), (7, "leader")) == []
    # A follower, or a server that looks for a leader, says nothing of it.
    assert outages(log, (4.5, "follower"), (7, None)) == [(since, until)]


@given(
    st.lists(st.integers(0, 40), max_size=8, unique=True).map(sorted),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_after_counts_the_time_without_outages(ends: list[int], begin: int, lasting: int) -> None:
    spans = list(zip(ends[::2], ends[1::2], strict=False))
    at, left = begin, lasting
    while left:
        left -= not any(since <= at < until for since, until in spans)
        at += 1
    assert Outages(spans=spans).after(begin, lasting) == at
