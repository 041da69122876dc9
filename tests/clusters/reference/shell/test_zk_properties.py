"""A broker's properties in the ZooKeeper generation; what cannot be is refused."""

from pathlib import Path

import pytest

from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.shell.properties import read_properties
from fencepost.clusters.reference.shell.zk_properties import parsed
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from fencepost.history.failure import UsageError

BROKER = {
    "zookeeper.connect": "zookeeper-1.quorum:2181, zookeeper-2.quorum:2182",
    "listeners": "CLIENT://127.0.0.1:9092,REPL://127.0.0.1:9094",
    "advertised.listeners": "CLIENT://127.0.0.1:9092,REPL://broker-1.repl:9094",
    "inter.broker.listener.name": "REPL",
    "log.dirs": "/data",
}


def configured(**stated: str) -> ZkConfiguration:
    found = parsed(BROKER | {name.replace("__", "."): value for name, value in stated.items()})
    assert isinstance(found.configuration, ZkConfiguration)
    return found.configuration


def test_a_file_that_names_an_ensemble_is_of_the_zookeeper_generation(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in BROKER.items()))
    found = read_properties(path)
    assert isinstance(found.configuration, ZkConfiguration)
    assert found.zookeepers == (("zookeeper-1.quorum", 2181), ("zookeeper-2.quorum", 2182))
    assert found.replication_listener == "REPL"


def test_the_time_outs_and_the_protocol_are_read() -> None:
    found = parsed(
        BROKER
        | {
            "zookeeper.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "300",
            "controller.heartbeat.timeout.ms": "2000",
            "broker.heartbeat.timeout.ms": "2500",
            "inter.broker.protocol.version": "1",
            "fencepost.broker.id.adopt.missing": "true",
            "host.name": "h",
            "broker.id": "7",
        }
    ).configuration
    assert isinstance(found, ZkConfiguration)
    assert (found.session_timeout_ns, found.heartbeat_interval_ns) == (3000 * MS, 300 * MS)
    assert found.controller_side_timeout_ns == 2000 * MS
    assert found.broker_side_timeout_ns == 2500 * MS
    assert found.inter_broker_protocol is InterBrokerProtocol.DIRECT
    assert found.inter_broker_protocol_max is InterBrokerProtocol.HEARTBEATS
    assert (found.node_id, found.host_name, found.adopts_missing_ids) == (7, "h", True)


def test_h01_without_an_id_the_broker_has_to_find_one() -> None:
    found = configured()
    assert (found.node_id, found.host_name) == (-1, "127.0.0.1")
    assert not found.adopts_missing_ids


def test_rules_of_this_generation_are_switched_off_by_name() -> None:
    rules = parsed(BROKER | {"fencepost.rules.off": "timeouts_ordered, acks_all_waits"}).rules
    assert not rules.acks_all_waits
    assert not getattr(rules, "timeouts_ordered", True)


def test_a_rule_that_is_off_by_default_is_switched_on_by_name() -> None:
    name = "member_incarnations_checked"
    assert not getattr(parsed(BROKER).rules, name)
    assert getattr(parsed(BROKER | {"fencepost.rules.on": name}).rules, name)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zookeeper.connect": "zookeeper-1"}, "zookeeper.connect: expected host:port"),
        ({"process.roles": "broker"}, "process.roles is not known"),
        ({"inter.broker.protocol.version": "3"}, "expected one of 1, 2, found '3'"),
        (
            {
                "inter.broker.protocol.version": "2",
                "fencepost.inter.broker.protocol.version.max": "1",
            },
            "expected at most fencepost.inter.broker.protocol.version.max=1",
        ),
        ({"inter.broker.listener.name": "X"}, "expected one of CLIENT, REPL"),
        ({"broker.id": "-2"}, "broker.id: expected a whole number from -1"),
        ({"fencepost.broker.id.adopt.missing": "yes"}, "expected one of false, true"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        parsed(BROKER | changes)
    assert words in str(refused.value)
