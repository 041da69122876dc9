"""On real releases: leaders go where they are told, replicas too, topics and settings are there."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from fencepost.clusters.kafka.admin import KafkaAdmin
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka_port import KafkaSpec, Role
from fencepost.clusters.port import NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.kafka

WITHIN_S = 60.0
MOVES = (2, 1, 3, 1)


def admin_of(cluster: KafkaCluster) -> KafkaAdmin:
    return KafkaAdmin(
        leader=cluster._leader,
        brokers=lambda: cluster._running(Role.BROKER),
        nodes=lambda: {name: cluster._address(name) for name in cluster.nodes},
    )


@pytest.mark.parametrize("release", ["3.4.1", "4.3.1"])
def test_what_an_operator_asks_is_done_and_seen(
    release: str, run_cluster: Callable[..., AbstractContextManager[KafkaCluster]]
) -> None:
    with run_cluster(KafkaSpec(brokers=3, release=release)) as cluster:
        admin = admin_of(cluster)
        cluster.create_topics([TopicSpec(name="t", assignment=((1, 2, 3),))])
        for leader in MOVES:
            evidence = admin.move_leader("t-0", leader, within_s=WITHIN_S)
            assert cluster.view().partitions["t-0"].replicas[0] == leader
            assert f"it is leader {leader} in leader epoch" in evidence
        assert "already" in admin.move_leader("t-0", MOVES[-1], within_s=WITHIN_S)

        evidence = admin.reassign("t-0", (3, 2), within_s=WITHIN_S)
        assert "replicas [3, 2]" in evidence
        evidence = admin.reassign("t-0", (1, 2), within_s=WITHIN_S, awaited=False)
        assert evidence.endswith("its move to [1, 2] was granted")

        created = admin.create_topic(TopicSpec(name="u"), via=NodeName("broker-2"), within_s=10)
        assert created.startswith("broker-2 created topic u with id ")
        with pytest.raises(HarnessError, match="TOPIC_ALREADY_EXISTS"):
            admin.create_topic(TopicSpec(name="u"), via=None, within_s=10)
        with pytest.raises(HarnessError, match="INVALID_CONFIG"):
            admin.alter_config("u", {"retention.ms": "soon"}, via=None, within_s=10)
        assert "set retention.ms=5 of u" in admin.alter_config(
            "u", {"retention.ms": "5"}, via=NodeName("broker-3"), within_s=10
        )
