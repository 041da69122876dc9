"""Where the replicas of a broker go that leaves, and which feature levels have to move."""

from itertools import count

import pytest

from fencepost.clusters.kafka.configuration import first_members, nodes_of, refuse_impossible
from fencepost.clusters.kafka.features import moves
from fencepost.clusters.kafka.members import replacements
from fencepost.clusters.kafka_port import ClusterView, KafkaSpec, PartitionView, Quorum
from fencepost.history.failure import UsageError


def view(**replicas: tuple[int, ...]) -> ClusterView:
    partitions = {
        key: PartitionView(leader=of[0], isr=of, replicas=of) for key, of in replicas.items()
    }
    brokers = frozenset({1, 2, 3, 4})
    return ClusterView(time_ns=0, brokers=brokers, serving=brokers, partitions=partitions)


def test_a_leaving_brokers_place_is_taken_by_who_has_fewest_and_not_yet_this_one() -> None:
    seen = view(a=(1, 2), b=(2, 1), c=(2, 3), d=(3, 4))
    assert replacements(seen, 1, [2, 3, 4]) == {"a": (4, 2), "b": (2, 3)}


def test_where_every_other_broker_has_one_a_replica_is_saved() -> None:
    assert replacements(view(a=(1, 2, 3)), 1, [2, 3]) == {"a": (2, 3)}


def test_a_broker_that_has_nothing_leaves_nothing() -> None:
    assert not replacements(view(a=(1, 2)), 4, [1, 2, 3])


def test_features_move_to_the_levels_of_the_version_up_down_and_away() -> None:
    now = {"metadata.version": 30, "group.version": 1, "kraft.version": 1, "share.version": 1}
    wanted = {"metadata.version": 21, "share.version": 1, "transaction.version": 2}
    assert moves(now, wanted) == {
        "group.version": 0,
        "metadata.version": 21,
        "transaction.version": 2,
    }
    assert not moves(wanted, wanted)


def test_spare_nodes_are_there_and_no_members() -> None:
    spec = KafkaSpec(brokers=2, spare_brokers=1, spare_controllers=1, quorum=Quorum.DYNAMIC)
    refuse_impossible(spec)
    nodes = nodes_of(spec, ports=count())
    names = ["controller-1", "controller-2", "broker-1", "broker-2", "broker-3"]
    assert [node.name for node in nodes] == names
    first = [node.name for node in first_members(spec, nodes)]
    assert first == ["controller-1", "broker-1", "broker-2"]


def test_spare_controllers_are_of_a_dynamic_quorum() -> None:
    with pytest.raises(UsageError, match="quorum: dynamic"):
        refuse_impossible(KafkaSpec(spare_controllers=1))
