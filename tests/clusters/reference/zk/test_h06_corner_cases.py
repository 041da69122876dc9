"""The corner cases that the draft on broker ids lists, and two that it does not (H06)."""

from typing import Any

import pytest
from named_hosts import NamedHosts

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.zk.znodes import decoded_host, host_path
from fencepost.clusters.simulation.host import ProcessState

NEW = 1001
"""The first id of the sequence."""


def led(**told: Any) -> tuple[NamedHosts, PartitionKey, int]:
    """A cluster, a partition of all brokers with one record, and a host that does not control."""
    cluster = NamedHosts(**told)
    host = next(one for one in (1, 2, 3) if one != cluster.controller())
    first = next(one for one in (1, 2, 3) if one not in (cluster.controller(), host))
    key = (cluster.create("t", (first, host, cluster.controller())), 0)
    assert cluster.produce(key, "a", broker=first) == 0
    return cluster, key, host


def test_h06_a_host_that_lost_its_disk_gets_its_id_and_its_replicas_back() -> None:
    cluster, key, host = led()
    cluster.lose(host)
    cluster.start(host)
    assert cluster.registered(host) == (host,)
    cluster.refilled(host, key, ["a"])


@pytest.mark.parametrize("adopts", [False, True])
def test_h06_one_that_restarts_within_its_own_session_gets_another_id(*, adopts: bool) -> None:
    cluster, key, host = led(adopts_missing_ids=adopts)
    cluster.lose(host, at_once=True)
    cluster.start(host)
    assert cluster.registered(host) == (NEW,)
    cluster.run_ms(3_000)
    assert key not in cluster.broker(host).replicas.hosted, "nobody has the replica any more"


@pytest.mark.parametrize(("adopts", "found"), [(False, NEW), (True, None)])
def test_h06_a_host_of_another_name_gets_its_id_back_by_step_b_alone(
    *, adopts: bool, found: int | None
) -> None:
    cluster, key, host = led(adopts_missing_ids=adopts)
    cluster.lose(host)
    cluster.settings[host]["host_name"] = "elsewhere"
    cluster.start(host)
    assert cluster.registered(host) == (found or host,)
    if adopts:
        cluster.refilled(host, key, ["a"])


def test_h06_two_hosts_of_other_names_that_lost_their_disks_are_both_refused() -> None:
    cluster, _, host = led(adopts_missing_ids=True)
    other = next(one for one in (1, 2, 3) if one not in (host, cluster.controller()))
    for one in (host, other):
        cluster.lose(one)
        cluster.settings[one]["host_name"] = f"elsewhere-{one}"
    cluster.start(host, other)
    cluster.until(lambda: cluster.running() == [cluster.controller()])
    low, high = sorted((host, other))
    assert cluster.hosts[host].exit_reason == (
        f"registration refused: ids {low}, {high} have no broker; "
        "any may belong to one that starts later"
    )


def test_h06_without_step_b_every_host_of_another_name_gets_a_new_id() -> None:
    cluster, _, host = led()
    other = next(one for one in (1, 2, 3) if one not in (host, cluster.controller()))
    for one in (host, other):
        cluster.lose(one)
        cluster.settings[one]["host_name"] = f"elsewhere-{one}"
    cluster.hosts[4].disk.format({})
    cluster.settings[4]["host_name"] = "elsewhere-4"
    cluster.start(host, other, 4)
    assert set(cluster.registered(host, other, 4)) == {NEW, NEW + 1, NEW + 2}


def test_h06_of_two_newcomers_that_start_at_once_one_takes_the_missing_id() -> None:
    cluster, _, host = led(adopts_missing_ids=True)
    cluster.lose(host)
    cluster.settings[host]["host_name"] = "elsewhere"
    cluster.start(host, 4)
    assert set(cluster.registered(host, 4)) == {host, NEW}


def test_h06_a_newcomer_takes_the_id_of_a_broker_that_is_restarting() -> None:
    cluster = NamedHosts(adopts_missing_ids=True, registration_timeout_ns=2_000 * MS)
    owner = next(one for one in (1, 2, 3) if one != cluster.controller())
    key = (cluster.create("t", (owner,)), 0)
    assert cluster.produce(key, "a", broker=owner) == 0
    cluster.lose(owner, disk=False)
    cluster.start(4)
    assert cluster.registered(4) == (owner,)
    cluster.until(lambda: key in cluster.broker(4).replicas.leaders)
    assert cluster.values(4, key) == [], "the only copy is on the disk of its owner"
    cluster.start(owner)
    cluster.until(lambda: cluster.hosts[owner].state is ProcessState.DOWN)
    why = f"registration refused: another process is registered under broker id {owner}"
    assert cluster.hosts[owner].exit_reason == why


def test_h06_of_two_brokers_on_one_host_the_one_that_registered_last_has_its_entry() -> None:
    cluster, _, host = led(host_name="h")
    other = next(one for one in (1, 2, 3) if one not in (host, cluster.controller()))
    for one in (host, other):
        cluster.lose(one)
    kept = decoded_host(cluster.data(host_path("h")))
    cluster.start(host)
    cluster.registered(host)
    cluster.start(other)
    assert cluster.registered(host, other) == (kept, NEW)
    assert (host, other) != (kept, NEW), "the one has the other's replicas, which has nobody's"
