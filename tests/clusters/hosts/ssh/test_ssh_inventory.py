"""An inventory is refused as a whole at the first thing that cannot be, by its path."""

from pathlib import Path
from typing import Any

import pytest

from fencepost.clusters.hosts.ssh.inventory import Machine, assign, parse_inventory
from fencepost.clusters.port import NodeName
from fencepost.history.failure import SpecError, UsageError

_NODES = tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3")))


def test_a_machine_needs_no_more_than_a_host() -> None:
    inventory = parse_inventory({"machines": [{"host": "10.0.0.11"}]})
    assert inventory.machines == (Machine(host="10.0.0.11"),)
    assert inventory.known_hosts is None


def test_paths_of_the_user_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    machines = [{"host": "a", "identity": "~/.ssh/key"}]
    inventory = parse_inventory({"machines": machines, "known_hosts": "~/hosts"})
    assert inventory.machines[0].identity == Path("/home/me/.ssh/key")
    assert inventory.known_hosts == Path("/home/me/hosts")


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({}, ("machines",), "list of machines"),
        ({"machines": []}, ("machines",), "list of machines"),
        ({"machines": [{"hosts": "a"}]}, ("machines", 0, "hosts"), "allowed: host, port"),
        ({"machines": [{"user": "me"}]}, ("machines", 0), "needs 'host'"),
        ({"machines": [{"host": "a", "port": 0}]}, ("machines", 0, "port"), "1 to 65535"),
        ({"machines": [{"host": "a"}, {"host": "a"}]}, ("machines", 1, "host"), "listed twice"),
        (
            {"machines": [{"host": "a", "nodes": "broker-1"}]},
            ("machines", 0, "nodes"),
            "list of nodes",
        ),
        (
            {"machines": [{"host": h, "nodes": ["broker-1"]} for h in "ab"]},
            ("machines", 1, "nodes"),
            "on two machines",
        ),
        ({"machine": []}, ("machine",), "allowed: harness_address"),
    ],
    ids=[
        "nothing",
        "no-machine",
        "misspelt",
        "no-host",
        "port",
        "twice",
        "nodes-as-text",
        "node-twice",
        "unknown-key",
    ],
)
def test_what_cannot_be_is_named_by_its_path(
    data: dict[str, Any], path: tuple[str | int, ...], message: str
) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        parse_inventory(data)
    assert raised.value.path == path


def test_nodes_that_nobody_names_are_dealt_in_turn() -> None:
    one, two = Machine(host="one"), Machine(host="two")
    named = Machine(host="three", nodes=(NodeName("broker-2"),))
    placed = assign(_NODES, (one, named, two))
    assert [str(placed[node]) for node in _NODES] == ["one", "two", "three", "one"]


def test_a_node_without_a_machine_is_refused() -> None:
    only = Machine(host="one", nodes=(NodeName("broker-1"),))
    with pytest.raises(UsageError, match="no machine for controller-1, broker-2, broker-3"):
        assign(_NODES, (only,))


def test_a_node_that_the_cluster_lacks_is_refused() -> None:
    machines = (Machine(host="one", nodes=(NodeName("broker-9"),)), Machine(host="two"))
    with pytest.raises(UsageError, match="places broker-9; the cluster has controller-1"):
        assign(_NODES, machines)
