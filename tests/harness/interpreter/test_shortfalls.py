"""What a cluster that is not whole in time lacks, as data."""

import pytest

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeName, NodeState
from fencepost.harness.interpreter.shortfalls import Shortfalls
from fencepost.history.clock import Clock
from fencepost.history.manifest import NotWhole

WHOLE = {
    "t-0": PartitionView(leader=1, isr=(1, 2, 3), replicas=(1, 2, 3)),
    "m-0": PartitionView(leader=2, isr=(2,), replicas=(2,)),
}
OUT = {
    "t-0": PartitionView(leader=1, isr=(1, 3), replicas=(1, 2, 3)),
    "m-0": PartitionView(leader=None, isr=(2,), replicas=(2,)),
}
LAGGING = PartitionView(leader=1, isr=(1, 2), replicas=(1, 2, 3))
LEADERLESS = PartitionView(leader=None, isr=(1, 3), replicas=(1, 2, 3))
RUNNING = dict.fromkeys(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))


class Noon(Clock):
    def now_ns(self) -> int:
        return 12


def observed(
    partitions: dict[str, PartitionView],
    *,
    taking_part: frozenset[int] = frozenset({1, 3}),
    down: tuple[str, ...] = (),
) -> Observation:
    states = {node: NodeState.DOWN if node in down else NodeState.RUNNING for node in RUNNING}
    return Observation(
        view=ClusterView(
            time_ns=0, brokers=taking_part, serving=taking_part, partitions=partitions
        ),
        active_controller=NodeName("controller-1"),
        states=states,
        broker_ids={NodeName(f"broker-{one}"): one for one in (1, 2, 3)},
        acknowledged_count=0,
    )


def lacking(now: Observation) -> list[NotWhole]:
    shortfalls = Shortfalls(Noon(0))
    shortfalls.not_whole("60 s after a fault was healed", now)
    (words,) = shortfalls
    assert words.startswith("not whole 60 s after a fault was healed: ")
    assert all(one.shortfall == words for one in shortfalls.of_cluster)
    return shortfalls.of_cluster


def test_a_cluster_that_lacks_nothing_but_a_broker_and_its_replicas_says_which() -> None:
    (one,) = lacking(observed(OUT))
    assert (one.broker_ids, one.time_ns) == ((2,), 12)


@pytest.mark.parametrize(
    "now",
    [
        observed(OUT | {"u-0": LAGGING}),
        observed(OUT | {"u-0": LEADERLESS}),
        observed(OUT, down=("broker-2",)),
        observed(OUT, down=("controller-1",)),
        observed(WHOLE, taking_part=frozenset({1, 2, 3})),
    ],
    ids=[
        "another broker lags",
        "nobody leads though others could",
        "it does not run",
        "a controller does not run",
        "all take part",
    ],
)
def test_whatever_else_is_lacking_is_told_in_words_alone(now: Observation) -> None:
    assert lacking(now) == []


def test_without_the_clock_of_a_run_there_are_words_alone() -> None:
    shortfalls = Shortfalls()
    shortfalls.not_whole("60 s after healing", observed(OUT))
    assert len(shortfalls) == 1
    assert shortfalls.of_cluster == []
