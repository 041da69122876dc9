"""H05: the garbage below /brokers/hosts."""

from control_desk import READY, Desk

from fencepost.clusters.node_port.zookeeper import Create
from fencepost.clusters.reference.nodes.messages.control import AlterConfigsRequest
from fencepost.clusters.reference.zk.situation import SeenChanges
from fencepost.clusters.reference.zk.znodes import (
    CONFIG_CHANGES,
    HOSTS,
    BrokerInfo,
    broker_path,
    decoded_settings,
    encoded_host,
    host_path,
)


def desk_with_hosts(*without: str) -> Desk:
    """Hosts whose id is theirs, another's, and nobody's."""
    desk = Desk(2, *without)
    for host, broker_id in (("host-1", 1), ("old-host", 1), ("host-9", 9)):
        desk.double.write(Create(host_path(host), encoded_host(broker_id)))
    return desk


def test_h05_a_host_whose_id_is_registered_by_another_is_removed() -> None:
    desk = desk_with_hosts()
    desk.advance(60_000)
    assert desk.double.children(HOSTS) == ("host-1", "host-9")


def test_h05_a_host_is_the_one_of_the_registration_whatever_its_listeners_are() -> None:
    desk = Desk(1)
    named = BrokerInfo(2, (("CLIENT", "address-2", 9092, 0),), None, READY, "named-2")
    assert BrokerInfo.decoded(2, named.encoded()) == named
    desk.double.write(Create(broker_path(2), named.encoded()))
    for host in ("named-2", "address-2"):
        desk.double.write(Create(host_path(host), encoded_host(2)))
    desk.settle()
    desk.advance(60_000)
    assert desk.double.children(HOSTS) == ("named-2",)


def test_h05_without_the_rule_the_garbage_stays() -> None:
    desk = desk_with_hosts("host_garbage_removed")
    desk.advance(60_000)
    assert "old-host" in desk.double.children(HOSTS)


def test_a_notification_of_settings_is_removed_at_the_second_scan_that_finds_it() -> None:
    desk = Desk(2)
    desk.create("t", (1, 2))
    desk.ask(AlterConfigsRequest(700, ((2, "t", "retention.ms", "5"),)))
    desk.advance(60_000)
    assert len(desk.double.children(CONFIG_CHANGES)) == 1
    desk.advance(60_000)
    assert desk.double.children(CONFIG_CHANGES) == ()
    assert decoded_settings(desk.double.data("/config/topics/t")) == {"retention.ms": "5"}


def test_a_broker_in_office_anew_knows_since_when_a_notification_is_there() -> None:
    """Offices may all be shorter than the interval of scans."""
    seen = SeenChanges()
    seen.add(5, ("change-1",))
    seen.add(9, ("change-1", "change-2"))
    seen.add(9, ())
    assert [seen.last_by(time) for time in (4, 5, 8, 9, 20)] == [
        "",
        *["change-1"] * 2,
        *["change-2"] * 2,
    ]
