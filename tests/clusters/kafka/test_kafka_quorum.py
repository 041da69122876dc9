"""Three controllers: who leads is known at any time, and when it is gone, another one does."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from waiting import leading

from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka_port import KafkaSpec, Role, role_of
from fencepost.clusters.port import NodeState
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import UsageError

pytestmark = pytest.mark.kafka

RunCluster = Callable[..., AbstractContextManager[KafkaCluster]]
Until = Callable[..., bool]


@pytest.fixture(scope="module")
def cluster(run_cluster: RunCluster) -> Iterator[KafkaCluster]:
    with run_cluster(KafkaSpec(controllers=3, brokers=1, release="3.9.2")) as it:
        yield it


def test_one_of_the_controllers_leads(cluster: KafkaCluster) -> None:
    assert role_of(leading(cluster)) is Role.CONTROLLER


@pytest.mark.parametrize("fault", ["kill_node", "pause_node"])
def test_another_controller_leads_when_the_leader_is_gone(
    cluster: KafkaCluster, until: Until, fault: str
) -> None:
    old = leading(cluster)
    getattr(cluster, fault)(old)
    assert until(lambda: cluster.leader_now() not in (None, old), timeout_s=90)
    cluster.create_topics([TopicSpec(name=fault, replication_factor=1)])
    assert cluster.view().partitions[f"{fault}-0"].leader == 1
    if cluster.state(old) is NodeState.DOWN:
        cluster.start_node(old)
    else:
        cluster.resume_node(old)
    assert cluster.state(old) is NodeState.RUNNING


def test_without_a_majority_nobody_leads(cluster: KafkaCluster, until: Until) -> None:
    leader = leading(cluster)
    others = [controller for controller in cluster.nodes[:3] if controller != leader]
    for controller in others:
        cluster.kill_node(controller)
    assert until(lambda: cluster.leader_now() is None, timeout_s=90)
    for controller in others:
        cluster.start_node(controller)
    assert until(lambda: cluster.leader_now() is not None, timeout_s=90)


def test_a_taken_port_is_named_before_anything_starts(run_cluster: RunCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        message = f"port {taken} on 127.0.0.1 cannot be used.* choose another port base"
        with (
            pytest.raises(UsageError, match=message),
            run_cluster(KafkaSpec(), port_base=taken, start=False),
        ):
            pytest.fail("built on a taken port")
