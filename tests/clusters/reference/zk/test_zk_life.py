"""The life of a broker: its registration, its heartbeats, its fencing, its end."""

from typing import Any

import pytest
from zk_cluster import CLOSED, Cluster

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.notes import BROKER_STATE, FENCED_SELF
from fencepost.clusters.node_port.storage import META_PROPERTIES, MetaProperties
from fencepost.clusters.node_port.zookeeper import ZOOKEEPER
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import MetadataRequest
from fencepost.clusters.reference.nodes.messages.data import FetchRequest, InitProducerIdRequest
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from fencepost.clusters.reference.zk.life_cycle import ZkLifeCycle
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    IsrChangeRequest,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import BrokerInfo, broker_path, decoded_host, host_path
from fencepost.clusters.simulation.host import ProcessState

DIRECT = {0: {"inter_broker_protocol": InterBrokerProtocol.DIRECT}}
OF_DRAFT = (MetadataHeartbeatRequest.kind, IsrChangeRequest.kind)
SERVER = ZOOKEEPER + 1


class Alone:
    """The rest of a broker that leads nothing."""

    leads_for_others = False

    def ended(self, reason: str, effects: Effects) -> None:
        raise AssertionError((reason, effects))


def znode(cluster: Cluster, path: str) -> Any:
    """The znode that the ensemble's one server has; None: there is none."""
    return cluster.ensemble.server(cluster.ensemble.hosts[0]).tree.znodes.get(path)


def victim(cluster: Cluster) -> int:
    """A broker that is not the controller."""
    return next(one for one in cluster.hosts if one != cluster.controller())


def state(cluster: Cluster, number: int) -> BrokerState:
    return cluster.broker(number).registrar.life.state


# Registration.


def test_z01_the_incarnation_id_is_the_czxid_and_grows_with_each_registration() -> None:
    cluster = Cluster(brokers=1).ready()
    first = cluster.broker(1).situation.broker_epoch
    assert first == znode(cluster, broker_path(1)).czxid
    cluster.kill(1)
    cluster.start(1)
    cluster.until(lambda: cluster.broker(1).situation.broker_epoch > first)
    assert cluster.broker(1).situation.broker_epoch == znode(cluster, broker_path(1)).czxid


def test_z01_without_its_rule_two_incarnations_are_alike() -> None:
    cluster = Cluster("incarnation_from_czxid", brokers=1)
    cluster.until(lambda: cluster.broker(1).situation.broker_epoch >= 0)
    assert cluster.broker(1).situation.broker_epoch == 0
    cluster.kill(1)
    cluster.start(1)
    cluster.until(lambda: cluster.broker(1).situation.broker_epoch >= 0)
    assert cluster.broker(1).situation.broker_epoch == 0


def test_a_second_process_with_the_id_of_a_live_broker_waits_and_ends() -> None:
    cluster = Cluster(brokers=2, settings={2: {"node_id": 1}})
    cluster.until(lambda: ProcessState.DOWN in [host.state for host in cluster.hosts.values()])
    reasons = [host.exit_reason for host in cluster.hosts.values()]
    why = "registration refused: another process is registered under broker id 1"
    assert sorted(reasons, key=str) == [None, why]


def test_a_broker_whose_session_expired_registers_anew_and_serves_nothing_meanwhile() -> None:
    cluster = Cluster().ready()
    cut, before = victim(cluster), 0
    before = cluster.broker(cut).situation.broker_epoch
    cluster.block(cut, SERVER)
    cluster.until(lambda: znode(cluster, broker_path(cut)) is None)
    cluster.heal(cut, SERVER)
    cluster.until(lambda: cluster.broker(cut).situation.broker_epoch > before)
    states = [one[2] for one in cluster.noted(BROKER_STATE, node=cut)]
    registering, fenced, running = (
        BrokerState.REGISTERING,
        BrokerState.FENCED,
        BrokerState.RUNNING,
    )
    cluster.until(lambda: state(cluster, cut) == running)
    states = [one[2] for one in cluster.noted(BROKER_STATE, node=cut)]
    assert states[:3] == [registering, fenced, running]
    assert states[-3:] == [registering, fenced, running]


def test_below_the_new_protocol_a_broker_serves_on_without_its_session() -> None:
    cluster = Cluster(settings=DIRECT).ready()
    cut = victim(cluster)
    cluster.block(cut, SERVER)
    cluster.until(lambda: znode(cluster, broker_path(cut)) is None)
    assert state(cluster, cut) == BrokerState.RUNNING
    assert cluster.metadata(cut) != CLOSED
    before = cluster.broker(cut).situation.broker_epoch
    cluster.heal(cut, SERVER)
    cluster.until(lambda: cluster.broker(cut).situation.broker_epoch > before)


def test_h01_the_id_is_written_to_the_disk_and_h02_under_the_name_of_the_host() -> None:
    cluster = Cluster(brokers=1, settings={0: {"node_id": -1, "reserved_broker_id_max": 0}})
    cluster.until(lambda: cluster.broker(1).situation.node_id == 1)
    cluster.until(lambda: znode(cluster, host_path("host-1")) is not None)
    assert decoded_host(znode(cluster, host_path("host-1")).data) == 1
    assert cluster.hosts[1].disk.files[META_PROPERTIES].node_id == 1


@pytest.mark.parametrize(
    ("meta", "settings", "why"),
    [
        (("c", 7), {}, "registration refused: broker.id is 1, and the disk is of broker 7"),
        (("x", 1), {}, "meta.properties: expected cluster 'c', found 'x'"),
    ],
)
def test_h01_a_disk_of_another_broker_or_cluster_is_refused(
    meta: tuple[str, int], settings: dict[str, Any], why: str
) -> None:
    cluster = Cluster(brokers=1, settings={1: settings}).ready()
    cluster.kill(1)
    found = MetaProperties(cluster_id=meta[0], node_id=meta[1], directory_id=0, mode="")
    cluster.hosts[1].disk.format({META_PROPERTIES: found})
    cluster.start(1)
    cluster.until(lambda: cluster.hosts[1].state is ProcessState.DOWN)
    assert cluster.hosts[1].exit_reason == why


# Heartbeats and fencing.


def test_z03_a_heartbeat_names_the_broker_its_incarnation_and_the_state_it_wants() -> None:
    cluster = Cluster(watched=OF_DRAFT).ready()
    source, target, heartbeat = cluster.sent[-1]
    incarnation = cluster.broker(source).situation.broker_epoch
    assert target == cluster.controller()
    assert (heartbeat.broker_id, heartbeat.incarnation_id) == (source, incarnation)
    assert heartbeat.target_state == ControlledState.ACTIVE


def test_z03_another_controller_is_sent_a_heartbeat_at_once() -> None:
    settings = {0: {"heartbeat_interval_ns": 900 * MS}}
    cluster = Cluster(watched=OF_DRAFT, settings=settings).ready()
    before = cluster.controller()
    cluster.kill(before)
    rest = [one for one in cluster.hosts if one != before]
    cluster.until(lambda: all(cluster.broker(one).situation.controller_id in rest for one in rest))
    sent = len(cluster.sent)
    cluster.run_ms(50)
    new = cluster.broker(rest[0]).situation.controller_id
    told = {(source, target) for source, target, _ in cluster.sent[sent - 1 :]}
    assert {(one, new) for one in rest} <= told


def test_z08_a_broker_fences_itself_without_the_controller_and_comes_back() -> None:
    cluster = Cluster().ready()
    cut, controller = victim(cluster), cluster.controller()
    cluster.block(cut, controller)
    cluster.run_ms(1_700)
    assert state(cluster, cut) == BrokerState.RUNNING, "the broker-side time-out is 2 s"
    cluster.run_ms(400)
    assert state(cluster, cut) == BrokerState.FENCED
    assert cluster.ask(cut, MetadataRequest(0, None)) == CLOSED
    cluster.heal(cut, controller)
    cluster.until(lambda: state(cluster, cut) == BrokerState.RUNNING)
    assert cluster.ask(cut, MetadataRequest(0, None)) != CLOSED


def test_z08_what_is_under_way_when_a_broker_fences_itself_is_completed() -> None:
    cluster = Cluster().ready()
    cut = victim(cluster)
    key = (cluster.create("t", (cut,)), 0)
    cluster.block(cut, cluster.controller())
    cluster.run_ms(1_500)
    entry = (key, 0, -1, -1)
    waiting = cluster.send(cut, FetchRequest(0, -1, -1, 15, (entry,), 1_500 * MS))
    cluster.until(lambda: bool(cluster.noted(FENCED_SELF, node=cut)))
    assert waiting not in cluster.answers
    cluster.until(lambda: waiting in cluster.answers)
    assert cluster.answers[waiting] != CLOSED


@pytest.mark.parametrize("rule", ["broker_ends_silence", "fenced_serves_nobody"])
def test_z08_without_its_rules_a_broker_serves_old_metadata(rule: str) -> None:
    cluster = Cluster(rule).ready()
    cut, controller = victim(cluster), cluster.controller()
    cluster.block(cut, controller)
    cluster.run_ms(4_000)
    assert cluster.ask(cut, MetadataRequest(0, None)) != CLOSED


def test_z08_a_broker_is_fenced_the_moment_it_goes_on_after_a_pause() -> None:
    cluster = Cluster().ready()
    paused = victim(cluster)
    cluster.simulation.pause(cluster.hosts[paused])
    correlation = cluster.send(paused, MetadataRequest(0, None))
    cluster.run_ms(5_000)
    cluster.simulation.resume(cluster.hosts[paused])
    cluster.until(lambda: correlation in cluster.answers)
    assert cluster.answers[correlation] == CLOSED


@pytest.mark.parametrize(("late_ns", "state"), [(-1, BrokerState.RUNNING), (0, BrokerState.FENCED)])
def test_z08_an_answer_to_a_heartbeat_of_before_the_timeout_makes_no_broker_active(
    late_ns: int, state: BrokerState
) -> None:
    effects: Effects = []
    timeout_ns = 3_000 * MS
    configuration = ZkConfiguration(
        node_id=1, is_controller=False, voters=(), cluster_id="c", broker_side_timeout_ns=timeout_ns
    )
    situation = ZkSituation(configuration, ZkRules())
    situation.controller_id = 9
    life = ZkLifeCycle(situation, Alone())
    life.start(is_unclean=False, effects=effects)
    life.registered(0, effects)
    (heartbeat,) = [effect[2] for effect in effects if effect[0] == SEND]
    answer = MetadataHeartbeatResponse(heartbeat.correlation, 0, None, ControlledState.ACTIVE)
    life.heard(timeout_ns + late_ns, answer, effects)
    assert life.state == state
    assert situation.serves_until_ns == (timeout_ns if late_ns else 0)


@pytest.mark.parametrize("broker_side_ms", [500, 1_000])
def test_z08_a_broker_side_timeout_that_is_not_longer_is_refused(broker_side_ms: int) -> None:
    settings = {0: {"broker_side_timeout_ns": broker_side_ms * MS}}
    cluster = Cluster(brokers=1, settings=settings)
    cluster.until(lambda: cluster.hosts[1].state is ProcessState.DOWN)
    assert cluster.hosts[1].exit_reason == (
        "broker.heartbeat.timeout.ms has to be more than controller.heartbeat.timeout.ms: "
        f"found {broker_side_ms} and 1000"
    )


@pytest.mark.parametrize("direct", [False, True])
def test_z08_such_timeouts_are_taken_without_the_rule_and_below_the_protocol(
    *, direct: bool
) -> None:
    gate = DIRECT[0] if direct else {}
    settings = {0: {"broker_side_timeout_ns": 500 * MS, **gate}}
    rules = () if direct else ("timeouts_ordered",)
    Cluster(*rules, brokers=1, settings=settings).ready()


# The inter-broker protocol.


def test_z11_below_the_new_protocol_a_broker_sends_nothing_of_the_draft() -> None:
    cluster = Cluster(settings=DIRECT, watched=OF_DRAFT).ready()
    key = (cluster.create("t", (1, 2, 3)), 0)
    cluster.simulation.pause(cluster.hosts[3])
    cluster.until(lambda: 3 not in cluster.isr(key, broker=1))
    assert cluster.sent == []


def test_z11_without_its_rule_it_does() -> None:
    cluster = Cluster("new_behaviour_gated", settings=DIRECT, watched=OF_DRAFT).ready()
    cluster.until(lambda: bool(cluster.sent))


def test_z11_a_protocol_above_that_of_the_software_is_refused() -> None:
    settings = {0: {"inter_broker_protocol_max": InterBrokerProtocol.DIRECT}}
    cluster = Cluster(brokers=1, settings=settings)
    cluster.until(lambda: cluster.hosts[1].state is ProcessState.DOWN)
    why = "inter.broker.protocol.version: expected at most 1, found 2"
    assert cluster.hosts[1].exit_reason == why


@pytest.mark.parametrize(("protocol", "version"), [(1, 4), (2, 5)])
def test_z12_a_registration_says_whether_the_broker_is_ready(protocol: int, version: int) -> None:
    settings = {0: {"inter_broker_protocol": InterBrokerProtocol(protocol)}}
    cluster = Cluster(brokers=1, settings=settings).ready()
    data = znode(cluster, broker_path(1)).data
    assert BrokerInfo.decoded(1, data).version == version


# The end.


@pytest.mark.rule("leaderships_moved_before_stop")
@pytest.mark.parametrize(("protocol", "is_on"), [(1, False), (2, False), (2, True)])
def test_z14_without_its_rule_alone_a_broker_ends_while_it_leads(
    *, protocol: int, is_on: bool
) -> None:
    settings = {0: {"inter_broker_protocol": InterBrokerProtocol(protocol)}}
    off = () if is_on else ("leaderships_moved_before_stop",)
    cluster = Cluster(*off, settings=settings).ready()
    stopped = victim(cluster)
    other = next(one for one in cluster.hosts if one not in (stopped, cluster.controller()))
    for name in "tuvw":
        cluster.create(name, (stopped, other))
    cluster.simulation.stop(cluster.hosts[stopped])
    leads: list[int] = []
    while cluster.hosts[stopped].state is not ProcessState.DOWN:
        leads.append(len(cluster.broker(stopped).replicas.leaders))
        cluster.run_ms(0.001)
    assert (leads[-1] > 0) is not is_on


def test_z14_the_last_replica_does_not_keep_a_broker_from_ending() -> None:
    cluster = Cluster().ready()
    stopped = victim(cluster)
    cluster.create("t", (stopped,))
    cluster.stop(stopped)
    assert cluster.hosts[stopped].exit_reason == ""
    cluster.run_ms(20)
    assert znode(cluster, broker_path(stopped)) is None, "it closes its session"


@pytest.mark.parametrize("protocol", list(InterBrokerProtocol))
def test_z14_a_broker_without_a_controller_ends_in_time(protocol: InterBrokerProtocol) -> None:
    cluster = Cluster(settings={0: {"inter_broker_protocol": protocol}}, watched=None).ready()
    stopped = victim(cluster)
    cluster.cut([stopped], [cluster.controller()])
    cluster.stop(stopped)
    is_direct = protocol == InterBrokerProtocol.DIRECT
    asked = any(isinstance(one, ControlledShutdownRequest) for *_, one in cluster.sent)
    assert asked == is_direct


# Producer ids.


def test_producer_ids_are_unique_across_brokers_and_restarts() -> None:
    cluster = Cluster().ready()
    found = []
    for broker in (1, 2, 3, 1):
        response = cluster.ask(broker, InitProducerIdRequest(0))
        assert response.error == Error.NONE
        found.append(response.producer_id)
    cluster.kill(1)
    cluster.start(1)
    cluster.until(cluster.is_ready)
    found.append(cluster.ask(1, InitProducerIdRequest(0)).producer_id)
    assert len(set(found)) == len(found)


def test_producer_ids_are_given_twice_without_the_rule() -> None:
    cluster = Cluster("producer_ids_unique").ready()
    found = [cluster.ask(one, InitProducerIdRequest(0)).producer_id for one in (1, 2)]
    assert found == [0, 0]
