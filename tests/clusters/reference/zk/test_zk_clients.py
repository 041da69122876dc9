"""A broker's service to clients, where this generation has its own way."""

from zk_cluster import CLOSED, Cluster

from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from fencepost.clusters.reference.nodes.messages.control import (
    CreateTopicsRequest,
    DescribeQuorumRequest,
    NewTopic,
)


def test_a_broker_that_is_not_the_controller_decides_nothing_and_names_who_does() -> None:
    cluster = Cluster().ready()
    other = next(one for one in cluster.hosts if one != cluster.controller())
    request = CreateTopicsRequest(0, (NewTopic("t", 1, 1),), 1_000 * MS)
    assert cluster.ask(other, request).topics[0][2] == Error.NOT_CONTROLLER
    assert cluster.metadata(other).controller_id == cluster.controller()


def test_what_this_generation_has_not_ends_the_connection() -> None:
    cluster = Cluster().ready()
    assert cluster.ask(cluster.controller(), DescribeQuorumRequest(0)) == CLOSED


def test_offsets_of_a_group_are_kept_by_the_leader_of_their_topic() -> None:
    cluster = Cluster().ready()
    find = FindCoordinatorRequest(0, ("g",))
    other = next(one for one in cluster.hosts if one != cluster.controller())
    cluster.until(lambda: cluster.ask(other, find).groups[0][1] == Error.NONE)
    coordinator = cluster.ask(other, find).groups[0][2]
    commit = OffsetCommitRequest(0, "g", (("t", 0, 5, -1, ""),))
    cluster.until(lambda: cluster.ask(coordinator, commit).offsets == (("t", 0, int(Error.NONE)),))
    found = cluster.ask(coordinator, OffsetFetchRequest(0, "g", None))
    assert found.offsets == (("t", 0, 5, -1, "", 0),)
