"""A real broker whose clock is put wrong and which is held back, and what is seen of it.

The tests share one cluster, and each leaves it whole.
"""

from collections.abc import Callable, Iterator

import pytest
from waiting import kill_all

from fencepost.clusters.abilities import Skew, Skews, Squeezes, Throttles
from fencepost.clusters.hosts.cgroups.hierarchy import parents
from fencepost.clusters.hosts.clocks.attach import ClockReading, jvm_clock
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.kafka

BROKER = NodeName("broker-1")
S = 1_000_000_000
SHARP_NS = 250_000_000


def _groups_here() -> bool:
    try:
        parents()
    except HarnessError:
        return False
    return True


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, prepared: Callable[[KafkaSpec], KafkaPrepared]
) -> Iterator[KafkaCluster]:
    spec = KafkaSpec(brokers=1, own_clocks=True, own_groups=_groups_here())
    directory = tmp_path_factory.mktemp("hardships")
    with (
        Ledger(run_id="hardships", directory=directory) as ledger,
        Warden(run_id="hardships", will=ledger.will) as warden,
    ):
        it = KafkaCluster(
            spec,
            prepared=prepared(spec),
            site=Site(
                host=LocalHost(warden, ledger=ledger),
                directory=directory / "nodes",
                clock=Clock.start(),
            ),
        )
        try:
            it.start()
            yield it
        finally:
            kill_all(it)
            it.stop()


def ahead_s(cluster: KafkaCluster, until: Callable[..., bool]) -> float:
    """How far ahead its JVM says it is, by a look that was answered at once.

    On a busy machine one takes seconds, and says less; and a JVM that has just begun hears nobody.
    """
    pid = cluster.pid_of(BROKER)
    assert pid is not None
    looks: list[ClockReading] = []

    def is_sharp() -> bool:
        looks.append(jvm_clock(pid, timeout_s=60))
        return looks[-1].doubt_ns < SHARP_NS

    assert until(is_sharp), looks[-1]
    return looks[-1].ahead_ns / S


def test_it_offers_what_hardships_need(cluster: KafkaCluster) -> None:
    assert isinstance(cluster, Skews)
    assert isinstance(cluster, Throttles)
    assert isinstance(cluster, Squeezes)


@pytest.mark.parametrize(
    ("skew", "says"),
    [
        (Skew(jump_s=-60), "its clock jumped, by its own word"),
        (Skew(rate=1.5), "runs at 1.5 times its pace"),
        (Skew(strobe_s=2, every_s=0.2), "goes back and forth"),
    ],
    ids=["jump", "drift", "strobe"],
)
def test_a_clock_is_wrong_by_the_word_of_its_jvm_and_then_right_again(
    cluster: KafkaCluster, until: Callable[..., bool], skew: Skew, says: str
) -> None:
    assert says in cluster.skew_node(BROKER, skew)
    if skew.jump_s:
        assert ahead_s(cluster, until) == pytest.approx(skew.jump_s, abs=0.5)
    assert "its clock is right" in cluster.unskew_node(BROKER)
    assert ahead_s(cluster, until) == pytest.approx(0, abs=0.5)
    assert cluster.clock_skews()[-1].node == BROKER


def test_a_node_that_starts_again_finds_its_clock_as_it_was_left(
    cluster: KafkaCluster, until: Callable[..., bool]
) -> None:
    cluster.skew_node(BROKER, Skew(jump_s=30))
    cluster.kill_node(BROKER)
    cluster.start_node(BROKER)
    assert ahead_s(cluster, until) == pytest.approx(30, abs=0.5)
    cluster.unskew_node(BROKER)


@pytest.mark.skipif(not _groups_here(), reason="no control group of ours can be made here")
def test_it_is_held_back_and_pressed_and_let_go(cluster: KafkaCluster) -> None:
    assert "held back by the kernel" in cluster.throttle_node(BROKER, 0.02)
    assert "free again" in cluster.unthrottle_node(BROKER)
    assert "bound to" in cluster.squeeze_node(BROKER, 4 << 20)
    assert "free again" in cluster.unsqueeze_node(BROKER)
