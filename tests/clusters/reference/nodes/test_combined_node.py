"""Nodes that are controller and broker at once, in a simulated world."""

from typing import Any

import pytest
from broker_world import World, batch, configured
from stage import Stage

from fencepost.clusters.reference.nodes.combined import CombinedNode
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.messages.control import BrokerHeartbeatRequest
from fencepost.clusters.reference.nodes.messages.quorum import MetadataFetchRequest
from fencepost.clusters.reference.nodes.quorum_broker import quorum_broker
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.simulated.cluster import CLIENTS_FROM, HARNESS_FROM
from fencepost.clusters.reference.simulated.quorum_kit import TwoListeners
from fencepost.clusters.simulation.host import EVERY_TICK


class _Doors(TwoListeners):
    """A node whose broker is looked at as others in such worlds are."""

    alarm = EVERY_TICK

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node._broker, name)


class CombinedWorld(World):
    """Brokers from 1 on, of which the first `voting` are the controllers."""

    def __init__(self, *, brokers: int = 3, voting: int = 3, **settings: Any) -> None:
        Stage.__init__(self)
        self.brokers = brokers
        self.voters = ()
        voters = tuple(range(1, voting + 1))

        def build(node_id: int) -> Any:
            configuration = configured(node_id, voters, **settings)
            if node_id not in voters:
                return quorum_broker(configuration, Rules())
            return _Doors(
                CombinedNode(configuration, Rules()),
                asker=self.simulation.network.number_of,
                clients_from=CLIENTS_FROM,
                operators_from=HARNESS_FROM,
            )

        for node_id in range(1, brokers + 1):
            self.add(node_id, lambda node_id=node_id: build(node_id))
            self.start(node_id)
        self.until(self.is_ready)

    def active(self) -> int | None:
        """Who leads the quorum, by its own word; of several, the one of the latest epoch."""
        leading = [
            (one.node._controller.voter.epoch, node_id)
            for node_id, one in self.nodes.items()
            if isinstance(one, _Doors) and one.node._controller.voter.is_leader
        ]
        return max(leading)[1] if leading else None


@pytest.fixture(scope="module", params=[(1, 1), (3, 1), (3, 3)])
def shape(request: pytest.FixtureRequest) -> tuple[int, int]:
    found: tuple[int, int] = request.param
    return found


def test_combined_nodes_are_a_cluster(shape: tuple[int, int]) -> None:
    brokers, voting = shape
    world = CombinedWorld(brokers=brokers, voting=voting)
    topic = world.create("t", tuple(range(1, brokers + 1)))
    assert world.produce((topic, 0), batch("a")) == (0, 0)
    for broker in range(1, brokers + 1):
        world.until(lambda broker=broker: world.values(broker, (topic, 0)) == ["a"])


def test_a_broker_replays_its_own_voters_log_and_fetches_none() -> None:
    world = CombinedWorld(brokers=3, voting=1)
    fetching = {s for s, _, message in world.sent if isinstance(message, MetadataFetchRequest)}
    assert fetching == {2, 3}
    own = world.nodes[1].node
    assert own._broker.registrar.observer.log is own._controller.voter.log


def test_a_broker_asks_its_own_controller_over_the_network() -> None:
    """So that its heartbeats can be held and are recorded, as those of any broker."""
    world = CombinedWorld(brokers=3, voting=1)
    assert any(
        (source, target) == (1, 1) and isinstance(message, BrokerHeartbeatRequest)
        for source, target, message in world.sent
    )
    world.catches = lambda source, target, message: (
        (source, target) == (1, 1) and isinstance(message, BrokerHeartbeatRequest)
    )
    world.until(lambda: not world.is_ready(1))
    world.release()
    world.until(world.is_ready)


@pytest.mark.parametrize("wiped", [False, True])
def test_the_death_of_the_active_one_takes_a_voter_and_a_leader(*, wiped: bool) -> None:
    world = CombinedWorld()
    old = world.active()
    assert old is not None
    replicas = (old, *(one for one in (1, 2, 3) if one != old))
    topic = world.create("t", replicas)
    assert world.produce((topic, 0), batch("a")) == (0, 0)
    world.kill(old)
    world.until(lambda: world.active() not in (None, old))
    world.until(lambda: world.leader((topic, 0)) not in (-1, old))
    assert world.produce((topic, 0), batch("b")) == (0, 1)
    if wiped:
        world.wipe(old)
    world.start(old)
    world.until(lambda: world.is_ready(old))
    world.until(lambda: old in world.partition((topic, 0)).isr)
    assert world.values(old, (topic, 0)) == ["a", "b"]


def test_a_snapshot_that_the_controller_cuts_does_not_outrun_the_broker() -> None:
    world = CombinedWorld(brokers=3, voting=3, metadata_snapshot_records=20)
    for number in range(12):
        world.create(f"t-{number}", (1, 2, 3))
    logs = [one.node._controller.voter.log for one in world.nodes.values()]
    world.until(lambda: all(log.start > 0 for log in logs))
    for one in world.nodes.values():
        assert {f"t-{number}" for number in range(12)} <= {*one.image.topics}


def test_a_clean_end_takes_the_brokers_leave_before_the_vote() -> None:
    world = CombinedWorld()
    active = world.active()
    assert active is not None
    world.stop(active)
    world.until(lambda: active in world.exits)
    assert world.exits == {active: ""}
    world.until(lambda: world.active() not in (None, active))
    gone = [words for node, *words in world.notes if node == active][-2:]
    assert "resigned" in str(gone), gone


def test_the_last_one_of_a_cluster_ends_too() -> None:
    world = CombinedWorld(brokers=1, voting=1)
    world.stop(1)
    world.until(lambda: world.exits == {1: ""}, limit_ns=60_000 * MS)
