"""Each node's configuration follows from the spec, and each link has a name of its own."""

import itertools
import socket
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.abilities import Route, direct
from fencepost.clusters.kafka.configuration import (
    KafkaNode,
    Listener,
    hosts_file,
    links_between,
    nodes_of,
    properties,
    refuse_impossible,
)
from fencepost.clusters.kafka_port import KafkaSpec, Quorum, Role
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.processes.properties import properties_file
from fencepost.history.failure import SpecError, UsageError

SPEC = KafkaSpec(controllers=3, brokers=2)


def configured(
    spec: KafkaSpec, name: str, *, version: str = "4.3.1", route: Route = direct
) -> dict[str, str]:
    nodes = nodes_of(spec, ports=count(9001))
    [node] = [node for node in nodes if node.name == name]
    return properties(spec, node, nodes=nodes, data=Path("/data"), version=version, route=route)


def by_name(name: str) -> KafkaNode:
    return next(node for node in nodes_of(SPEC, ports=count(9001)) if node.name == name)


def test_controllers_come_first_and_every_listener_has_a_port_of_its_own() -> None:
    nodes = nodes_of(SPEC, ports=count(9001))
    assert [(node.name, node.node_id) for node in nodes] == [
        ("controller-1", 1001),
        ("controller-2", 1002),
        ("controller-3", 1003),
        ("broker-1", 1),
        ("broker-2", 2),
    ]
    ports = [port for node in nodes for port in node.ports.values()]
    assert ports == list(range(9001, 9008))
    assert set(by_name("broker-1").ports) == {Listener.CLIENT, Listener.REPLICATION}
    assert by_name("controller-1").roles == (Role.CONTROLLER,)


def test_a_broker_says_who_it_is_and_where_it_is_found() -> None:
    found = configured(SPEC, "broker-2")
    assert {
        "node.id": "2",
        "process.roles": "broker",
        "log.dirs": "/data",
        "listeners": "CLIENT://127.0.0.1:9006,REPL://127.0.0.1:9007",
        "advertised.listeners": "CLIENT://127.0.0.1:9006,REPL://broker-2.repl:9007",
        "inter.broker.listener.name": "REPL",
        "controller.quorum.voters": (
            "1001@controller-1.raft:9001,1002@controller-2.raft:9002,1003@controller-3.raft:9003"
        ),
    }.items() <= found.items()


def test_a_controller_listens_for_nothing_else() -> None:
    found = configured(SPEC, "controller-2")
    assert found["listeners"] == "CONTROLLER://127.0.0.1:9002"
    assert "inter.broker.listener.name" not in found


def test_a_controller_is_found_by_its_name_also_where_its_answers_say_so() -> None:
    """A broker whose fetch has timed out goes where the leader says that it is."""
    found = configured(SPEC, "controller-2", version="3.9.0")
    assert found["advertised.listeners"] == "CONTROLLER://controller-2.raft:9002"
    assert "advertised.listeners" not in configured(SPEC, "controller-2", version="3.8.1")


def test_in_a_dynamic_quorum_nodes_are_told_where_to_ask_for_the_voters() -> None:
    spec = replace(SPEC, quorum=Quorum.DYNAMIC)
    for name in ("controller-2", "broker-1"):
        found = configured(spec, name)
        assert found["controller.quorum.bootstrap.servers"] == (
            "controller-1.raft:9001,controller-2.raft:9002,controller-3.raft:9003"
        )
        assert "controller.quorum.voters" not in found


def test_settings_win_over_defaults_and_those_of_the_role_over_those_of_all() -> None:
    spec = KafkaSpec(
        settings={"replica.lag.time.max.ms": "1", "num.io.threads": "7", "any.key": "passes"},
        broker_settings={"num.io.threads": "9"},
    )
    broker, controller = configured(spec, "broker-1"), configured(spec, "controller-1")
    assert (broker["replica.lag.time.max.ms"], controller["replica.lag.time.max.ms"]) == ("1", "1")
    assert (broker["num.io.threads"], controller["num.io.threads"]) == ("9", "7")
    assert broker["any.key"] == "passes"


@pytest.mark.parametrize(
    ("brokers", "factor", "isr"), [(1, "1", "1"), (2, "2", "2"), (5, "3", "2")]
)
def test_internal_topics_are_replicated_as_far_as_there_are_brokers(
    brokers: int, factor: str, isr: str
) -> None:
    found = configured(KafkaSpec(brokers=brokers), "broker-1")
    assert found["offsets.topic.replication.factor"] == factor
    assert found["transaction.state.log.min.isr"] == isr
    assert found["share.coordinator.state.topic.replication.factor"] == factor


def test_a_release_gets_no_setting_that_it_does_not_know() -> None:
    assert not any(
        key.startswith("share.") for key in configured(SPEC, "broker-1", version="3.9.2")
    )


TAKEN = {"node.id": "7", "listeners": "X", "num.io.threads": "1"}


@pytest.mark.parametrize(
    "spec",
    [
        KafkaSpec(settings=TAKEN),
        KafkaSpec(controller_settings=TAKEN),
        KafkaSpec(broker_settings=TAKEN),
    ],
    ids=["common", "of controllers", "of brokers"],
)
def test_what_the_harness_decides_cannot_be_set(spec: KafkaSpec) -> None:
    with pytest.raises(UsageError, match=r"the harness makes itself: listeners, node\.id \("):
        refuse_impossible(spec)


@pytest.mark.parametrize(("controllers", "brokers"), [(0, 3), (1, 0)])
def test_a_cluster_needs_both_roles(controllers: int, brokers: int) -> None:
    with pytest.raises(UsageError, match="there must be at least one of each"):
        refuse_impossible(KafkaSpec(controllers=controllers, brokers=brokers))


def lettered(source: NodeName, target: NodeName) -> str:
    """An address for each link, to be recognised by."""
    names = [CLIENTS, *(node.name for node in nodes_of(SPEC, ports=count(9001)))]
    return f"127.1.{names.index(source)}.{names.index(target)}"


def test_each_node_finds_the_others_at_the_address_of_the_link() -> None:
    nodes = nodes_of(SPEC, ports=count(9001))
    hosts = hosts_file(by_name("broker-1"), nodes=nodes, route=lettered)
    assert hosts.splitlines() == [
        "127.0.0.1 localhost",
        f"127.0.0.1 {socket.gethostname()}",
        "127.1.4.1 controller-1.raft",
        "127.1.4.2 controller-2.raft",
        "127.1.4.3 controller-3.raft",
        "127.0.0.1 broker-1.repl",
        "127.1.4.5 broker-2.repl",
    ]


def test_clients_find_a_broker_at_the_address_of_their_link() -> None:
    advertised = configured(SPEC, "broker-2", route=lettered)["advertised.listeners"]
    assert advertised == "CLIENT://127.1.0.5:9006,REPL://broker-2.repl:9007"


COMBINED = KafkaSpec(controllers=1, brokers=2, combined=True)


def test_a_combined_node_has_the_listeners_of_both_roles_and_one_id() -> None:
    COMBINED.check()
    assert COMBINED.nodes == ("broker-1", "broker-2")
    nodes = nodes_of(COMBINED, ports=count(9001))
    assert [(one.name, one.node_id, one.roles) for one in nodes] == [
        ("broker-1", 1, (Role.CONTROLLER, Role.BROKER)),
        ("broker-2", 2, (Role.BROKER,)),
    ]
    found = configured(COMBINED, "broker-1")
    assert {
        "node.id": "1",
        "process.roles": "controller,broker",
        "log.dirs": "/data",
        "listeners": "CONTROLLER://127.0.0.1:9001,CLIENT://127.0.0.1:9002,REPL://127.0.0.1:9003",
        "advertised.listeners": "CLIENT://127.0.0.1:9002,REPL://broker-1.repl:9003,"
        "CONTROLLER://broker-1.raft:9001",
        "inter.broker.listener.name": "REPL",
        "controller.quorum.voters": "1@broker-1.raft:9001",
    }.items() <= found.items()
    assert configured(COMBINED, "broker-2")["process.roles"] == "broker"
    older = configured(COMBINED, "broker-1", version="3.8.1")["advertised.listeners"]
    assert "CONTROLLER" not in older, "refused before 3.9"


def test_a_combined_node_is_told_what_is_set_for_either_role() -> None:
    spec = replace(
        COMBINED,
        controller_settings={"a": "controller", "b": "controller"},
        broker_settings={"b": "broker"},
    )
    found = configured(spec, "broker-1")
    assert (found["a"], found["b"]) == ("controller", "broker")
    assert "a" not in configured(spec, "broker-2")


def test_a_combined_node_dials_its_own_controller_over_a_link() -> None:
    nodes = nodes_of(COMBINED, ports=count(9001))
    links = links_between(nodes)
    assert {(one.source, one.target, str(one.role), one.port) for one in links} == {
        ("broker-1", "broker-1", "controller", 9001),
        ("broker-2", "broker-1", "controller", 9001),
        ("broker-2", "broker-1", "broker", 9003),
        ("broker-1", "broker-2", "broker", 9005),
        (CLIENTS, "broker-1", "broker", 9002),
        (CLIENTS, "broker-2", "broker", 9004),
    }
    names = [CLIENTS, *(node.name for node in nodes)]

    def route(source: NodeName, target: NodeName) -> str:
        return f"127.1.{names.index(source)}.{names.index(target)}"

    assert hosts_file(nodes[0], nodes=nodes, route=route).splitlines()[2:] == [
        "127.1.1.1 broker-1.raft",
        "127.0.0.1 broker-1.repl",
        "127.1.1.2 broker-2.repl",
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            KafkaSpec(controllers=3, brokers=2),
            "in a combined cluster expected at most 2, one per broker, found 3",
        ),
        (
            KafkaSpec(controllers=3, spare_controllers=1, quorum=Quorum.DYNAMIC),
            "the voters of a combined cluster are fixed",
        ),
    ],
)
def test_a_combined_cluster_that_cannot_be_is_refused(spec: KafkaSpec, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        replace(spec, combined=True).check()


@pytest.mark.parametrize("quorum", Quorum)
def test_brokers_that_vote_are_neither_added_nor_removed(quorum: Quorum) -> None:
    spec = replace(COMBINED, quorum=quorum, spare_brokers=1)
    spec.check()
    assert spec.fixed == {"broker-1"}
    assert spec.spares == {"broker-3"}


def read_properties(text: str) -> dict[str, str]:
    """`java.util.Properties.load` for what we write: slow and obvious."""
    escapes = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
    found: dict[str, str] = {}
    for line in text.split("\n")[:-1]:
        parts, at = ["", ""], 0
        characters = iter(line)
        for one in characters:
            if one == "\\":
                following = next(characters)
                if following == "u":
                    code = "".join(itertools.islice(characters, 4))
                    parts[at] += chr(int(code, 16))
                else:
                    parts[at] += escapes.get(following, following)
            elif one == "=" and at == 0:
                at = 1
            elif not (parts[at] == "" and one in " \t\f"):
                parts[at] += one
        key, value = (part.encode("utf-16", "surrogatepass").decode("utf-16") for part in parts)
        found[key] = value
    return found


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))
    )
)
def test_any_setting_survives_the_properties_file(settings: dict[str, str]) -> None:
    assert read_properties(properties_file(settings)) == settings
