"""Reference nodes that are controller and broker at once, as processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import ClusterView, KafkaSpec
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.slow

Until = Callable[..., bool]


def test_a_kill_takes_both_roles_and_a_wiped_node_comes_back_in_both(
    tmp_path: Path, until: Until
) -> None:
    spec = KafkaSpec(controllers=3, brokers=3, combined=True)
    with Warden(run_id="combined") as warden:
        it = ReferenceCluster(
            spec, site=Site(host=LocalHost(warden), directory=tmp_path, clock=Clock.start())
        )
        try:
            it.start()
            assert it.nodes == ("broker-1", "broker-2", "broker-3")
            it.create_topics([TopicSpec(name="t", assignment=((1, 2, 3),))])
            active = it.leader_now()
            assert active is not None
            it.kill_node(active)
            assert until(lambda: it.leader_now() not in (None, active))
            assert until(lambda: taking_part(it) == {1, 2, 3} - {it.broker_id(active)})
            it.wipe_node(active)
            it.start_node(active)
            assert until(lambda: taking_part(it) == {1, 2, 3})
            assert until(lambda: isr(it) == {1, 2, 3})
            found = {path.name for path in it.data_of(active).iterdir()}
            assert {"__cluster_metadata-0", "t-0"} <= found
        finally:
            it.stop()


def taking_part(it: ReferenceCluster) -> frozenset[int]:
    view = shown(it)
    return frozenset() if view is None else view.taking_part


def isr(it: ReferenceCluster) -> set[int]:
    view = shown(it)
    return set() if view is None else set(view.partitions["t-0"].isr)


def shown(it: ReferenceCluster) -> ClusterView | None:
    """Return the view of the cluster; None while no broker answers, as after a sudden death."""
    try:
        return it.view()
    except HarnessError:
        return None
