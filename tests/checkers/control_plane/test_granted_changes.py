"""IsrChanges that were granted: whether the partition had that ISR meanwhile."""

from hypothesis import given
from hypothesis import strategies as st
from metadata_logs import FACTS, metadata_log, wire

from fencepost.checkers.control_plane.granted_changes import granted_changes
from fencepost.checkers.metadata.isr_changes import ISR_CHANGE, IsrRequests
from fencepost.checkers.metadata.rpcs import rpcs
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.rows import OPEN_NS

ISRS = ("1,2", "1", "2")


@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from(ISRS)), max_size=8),
    st.integers(0, 6_000),
    st.integers(1, 3_000),
    st.sampled_from(ISRS),
)
def test_an_isr_was_in_force_in_some_version_that_overlaps_the_request(
    changes: list[tuple[int, str]], reached_ms: int, lasting_ms: int, asked: str
) -> None:
    lines, offset = ["5 topic t", "6 partition t-0 replicas 1,2 isr 1,2 leader 1"], 6
    for step, isr in changes:
        offset += step
        lines.append(f"{offset} change t-0 isr {isr}")
    seen = MetadataView(run=FACTS, metadata_log=metadata_log("\n".join(lines)))
    (history,) = seen.histories()
    (rpc,) = rpcs(
        wire(
            f"at {reached_ms} broker-1 changes t-0 isr {asked} leader-epoch 0 under 4 "
            f"-> ok at {reached_ms + lasting_ms}"
        ),
        ISR_CHANGE,
    )
    assert rpc.reached_ns is not None
    assert rpc.answered_ns is not None
    following = [seen.facts.latest_ns(one.timestamp_ms) for one in history.versions[1:]]
    was_in_force = any(
        set(version.isr) == {int(one) for one in asked.split(",")}
        and seen.facts.earliest_ns(version.timestamp_ms) <= rpc.answered_ns
        and end_ns >= rpc.reached_ns
        for version, end_ns in zip(history.versions, [*following, OPEN_NS], strict=True)
    )
    (proof,) = granted_changes(history, IsrRequests((rpc,), {}), seen, until_ns=OPEN_NS)
    assert (proof is None) is was_in_force
