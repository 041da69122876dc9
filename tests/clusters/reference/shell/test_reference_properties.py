"""K12: a node's properties, by the proposal's names and Kafka's; what cannot be is refused."""

from pathlib import Path

import pytest

from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.shell.properties import parsed, read_properties
from fencepost.history.failure import UsageError

_CONTROLLER = {
    "process.roles": "controller",
    "controller.id": "1001",
    "controller.connect": "1001@controller-1.raft:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:9093",
    "log.dirs": "/data",
}
_BROKER = _CONTROLLER | {
    "process.roles": "broker",
    "broker.id": "1",
    "listeners": "CLIENT://127.0.0.1:9092,REPL://127.0.0.1:9094",
    "advertised.listeners": "CLIENT://127.0.0.1:9092,REPL://broker-1.repl:9094",
    "inter.broker.listener.name": "REPL",
}


def test_k12_the_proposals_names_are_understood() -> None:
    times = {
        "registration.heartbeat.interval.ms": ("heartbeat_interval_ns", 100),
        "registration.lease.timeout.ms": ("lease_timeout_ns", 900),
        "controller.quorum.fetch.timeout.ms": ("quorum_fetch_timeout_ns", 300),
        "controller.quorum.election.timeout.ms": ("election_timeout_ns", 400),
        "controller.quorum.election.backoff.max.ms": ("election_backoff_max_ns", 500),
        "controller.quorum.request.timeout.ms": ("quorum_request_timeout_ns", 600),
        "controller.quorum.retry.backoff.ms": ("retry_backoff_ns", 30),
        "controller.quorum.retry.backoff.max.ms": ("retry_backoff_max_ns", 700),
    }
    stated = {name: str(number) for name, (_, number) in times.items()}
    found = parsed(_BROKER | stated | {"metadata.log.dir": "/metadata"})
    for field, number in times.values():
        assert getattr(found.configuration, field) == number * MS
    assert found.metadata_directory == Path("/metadata")
    assert found.configuration.node_id == 1
    assert not found.configuration.is_controller
    assert found.voters == {1001: ("controller-1.raft", 9093)}
    assert found.configuration.listeners == (
        ("CLIENT", "127.0.0.1", 9092, 0),
        ("REPL", "broker-1.repl", 9094, 0),
    )


def test_k12_the_defaults_are_the_proposals() -> None:
    found = parsed(_CONTROLLER).configuration
    assert found.is_controller
    assert found.heartbeat_interval_ns == 2_000 * MS
    assert found.lease_timeout_ns == 18_000 * MS
    assert found.level == 3


def test_kafkas_names_stand_for_the_proposals() -> None:
    stated = {"broker.session.timeout.ms": "900", "broker.heartbeat.interval.ms": "100"}
    voters = {"controller.quorum.voters": _BROKER["controller.connect"]}
    kafkas = {name: value for name, value in _BROKER.items() if name != "controller.connect"}
    found = parsed(kafkas | stated | voters | {"node.id": "1"})
    assert found.configuration.lease_timeout_ns == 900 * MS
    assert found.voters


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_quorum_has_an_odd_number_of_voters(count: int) -> None:
    voters = ",".join(f"{1000 + one}@c{one}:9093" for one in range(1, count + 1))
    assert len(parsed(_BROKER | {"controller.connect": voters}).voters) == count


@pytest.mark.parametrize("roles", ["broker,controller", "controller,broker"])
def test_a_process_may_have_both_roles(roles: str) -> None:
    both = {key: value for key, value in _BROKER.items() if not key.endswith(".id")} | {
        "process.roles": roles,
        "node.id": "1",
        "controller.connect": "1@broker-1.raft:9093",
        "listeners": f"{_CONTROLLER['listeners']},{_BROKER['listeners']}",
    }
    found = parsed(both)
    assert (found.is_broker, found.configuration.is_controller) == (True, True)
    assert set(found.bound) == {"CONTROLLER", "CLIENT", "REPL"}
    assert [name for name, *_ in found.configuration.listeners] == ["CLIENT", "REPL"]
    with pytest.raises(UsageError, match=r"one of them named CONTROLLER"):
        parsed(both | {"listeners": _BROKER["listeners"]})


def test_rules_are_switched_off_by_name() -> None:
    rules = parsed(_BROKER | {"fencepost.rules.off": "one_vote, sequence_checked"}).rules
    assert (rules.one_vote, rules.sequence_checked, rules.acks_all_waits) == (False, False, True)


@pytest.mark.parametrize(
    ("changes", "name", "allowed"),
    [
        ({"log.dirz": "/x"}, "log.dirz", "log.dirs"),
        ({"process.roles": "broker,voter"}, "process.roles", "broker, controller"),
        ({"process.roles": "broker,controller"}, "node.id", "missing"),
        ({"process.roles": ""}, "process.roles", "missing"),
        ({"broker.id": "-1"}, "broker.id", "from 0 to 2147483647"),
        ({"broker.id": "one"}, "broker.id", "a whole number"),
        ({"node.id": "2"}, "node.id", "broker.id"),
        ({"controller.connect": "1001:9093"}, "controller.connect", "id@host:port"),
        ({"controller.connect": "1@a:1,2@b:2"}, "controller.connect", "1, 3 or 5 controllers"),
        ({"controller.connect": "1@a:0"}, "controller.connect", "from 1 to 65535"),
        ({"listeners": "CLIENT:9092"}, "listeners", "name://host:port"),
        ({"inter.broker.listener.name": "NO"}, "inter.broker.listener.name", "CLIENT, REPL"),
        ({"registration.lease.timeout.ms": "0"}, "registration.lease.timeout.ms", "from 1 on"),
        ({"registration.lease.timeout.ms": "3s"}, "registration.lease.timeout.ms", "'3s'"),
        (
            {"registration.lease.timeout.ms": "2000"},
            "registration.heartbeat.interval.ms",
            "less than registration.lease.timeout.ms=2000",
        ),
        (
            {"controller.quorum.retry.backoff.ms": "9999"},
            "controller.quorum.retry.backoff.ms",
            "at most controller.quorum.retry.backoff.max.ms=1000",
        ),
        (
            {"broker.session.timeout.ms": "1", "registration.lease.timeout.ms": "2"},
            "registration.lease.timeout.ms",
            "stated twice",
        ),
        ({"fencepost.metadata.version": "4"}, "fencepost.metadata.version", "from 1 to 3"),
        ({"fencepost.rules.off": "no_rule"}, "fencepost.rules.off", "one_vote"),
        (
            {"listener.security.protocol.map": "CLIENT:SSL"},
            "listener.security.protocol.map",
            "PLAINTEXT",
        ),
    ],
)
def test_k12_what_cannot_be_is_refused_by_its_name_with_what_can(
    changes: dict[str, str], name: str, allowed: str
) -> None:
    with pytest.raises(UsageError) as refused:
        parsed(_BROKER | changes)
    assert name in str(refused.value)
    assert allowed in str(refused.value)


def test_a_controller_that_is_no_voter_is_refused() -> None:
    with pytest.raises(UsageError, match=r"controller\.connect: expected one that names 1002"):
        parsed(_CONTROLLER | {"controller.id": "1002"})


def test_a_file_is_named_with_its_problem(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    with pytest.raises(UsageError, match=r"server\.properties"):
        read_properties(path)
    path.write_text("# a comment\nprocess.roles=broker\nnonsense\n")
    with pytest.raises(UsageError, match=r"server\.properties: line 3: expected name=value"):
        read_properties(path)
    text = "".join(f"{name} = {value}\n" for name, value in _CONTROLLER.items())
    path.write_text(text)
    assert read_properties(path).configuration.node_id == 1001
