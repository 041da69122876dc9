"""H01 to H04: which id a broker has, where the draft's procedure finds it."""

from collections.abc import Awaitable
from typing import Any

import pytest
from zookeeper_double import ZookeeperDouble

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.zookeeper import Create, SessionEvent, SessionState, ZkResponse
from fencepost.clusters.reference.zk.broker_id import BrokerIds, NoBrokerIdError
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.coroutines import Started
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import (
    TopicInfo,
    broker_path,
    decoded_host,
    encoded_host,
    host_path,
    topic_path,
)


class Starting:
    """A broker that starts, with an ensemble that answers at once."""

    def __init__(self, *rules_off: str, disk: int | None = None, **configuration: Any) -> None:
        told = {"node_id": -1, "is_controller": False, "voters": (), "cluster_id": "c"}
        self.situation = ZkSituation(
            ZkConfiguration(**{**told, "host_name": "h", **configuration}),
            ZkRules().without(*rules_off),
        )
        self.zookeeper = ZookeeperDouble()
        self.session = self.zookeeper.open()
        self.disk = disk
        self.tried: list[int] = []
        self.errors: list[str] = []
        self.ids = BrokerIds(self.situation)

    def topic(self, name: str, *replicas: int) -> None:
        info = TopicInfo(len(name), {0: replicas}, {}, {})
        self.zookeeper.write(Create(topic_path(name), info.encoded()))

    def live(self, *ids: int) -> None:
        for broker_id in ids:
            self.zookeeper.write(Create(broker_path(broker_id), b"{}"))

    def kept(self, broker_id: int, *, host: str = "h") -> None:
        self.zookeeper.write(Create(host_path(host), encoded_host(broker_id)))

    def start(self) -> "Starting":
        connected = SessionEvent(-1, SessionState.CONNECTED, self.session.number)
        effects: Effects = []
        self.situation.zookeeper.session(0, connected, effects)
        return self.run(self.tries(self.ids.first(self.disk)), effects)

    def taken(self) -> "Starting":
        return self.run(self.tries(self.ids.next(self.tried[-1])), [])

    def registered(self) -> "Starting":
        self.situation.node_id = self.tried[-1]
        return self.run(self.ids.keep(), [])

    async def tries(self, search: Awaitable[int]) -> None:
        try:
            self.tried.append(await search)
        except NoBrokerIdError as error:
            self.errors.append(str(error))

    def run(self, coroutine: Started, effects: Effects) -> "Starting":
        self.situation.zookeeper.coroutines.run(0, coroutine, effects)
        return self.settle(effects)

    def settle(self, effects: Effects) -> "Starting":
        """Let ZooKeeper answer until nothing is asked any more."""
        while effects:
            asked = [effect[2] for effect in effects if effect[0] == SEND]
            effects.clear()
            for request in asked:
                self.zookeeper.request(self.session, request)
            while self.session.inbox:
                answer = self.session.inbox.popleft()
                assert isinstance(answer, ZkResponse)
                self.situation.zookeeper.answered(0, answer, effects)
        return self


def test_h01_the_configured_id_comes_before_the_disk_before_zookeeper() -> None:
    configured = Starting(node_id=3)
    configured.kept(7)
    assert configured.start().tried == [3]
    of_disk = Starting(disk=4)
    of_disk.kept(7)
    assert of_disk.start().tried == [4]
    assert Starting(disk=4, node_id=4).start().tried == [4]


def test_h01_an_id_of_the_disk_that_contradicts_the_configuration_is_an_error() -> None:
    found = Starting(disk=4, node_id=3).start()
    assert (found.tried, found.errors) == ([], ["broker.id is 3, and the disk is of broker 4"])
    assert Starting("id_sources_agree", disk=4, node_id=3).start().tried == [3]


def test_h01_a_given_id_that_another_broker_has_is_an_error() -> None:
    found = Starting(disk=4).start().taken()
    assert (found.tried, found.errors) == ([4], ["another broker has registered id 4"])


def test_h01_without_its_rule_the_disk_is_not_looked_at() -> None:
    found = Starting("id_of_disk_before_zookeeper", disk=4)
    found.kept(7)
    assert found.start().tried == [7]


@pytest.mark.parametrize("there", [False, True])
def test_h02_the_id_is_kept_for_the_host_once_it_is_registered(*, there: bool) -> None:
    found = Starting(node_id=3)
    if there:
        found.kept(9)
    found.start().registered()
    assert decoded_host(found.zookeeper.data(host_path("h"))) == 3


def test_h02_without_its_rule_no_id_is_kept() -> None:
    found = Starting("host_mapping_written", node_id=3).start().registered()
    assert found.zookeeper.children("/brokers/hosts") == ()


def test_h02_a_later_version_with_more_keys_is_read() -> None:
    found = Starting()
    later = b'{"version": 3, "broker.id": 8, "rack": "r"}'
    found.zookeeper.write(Create(host_path("h"), later))
    assert found.start().tried == [8]


def test_h03_a_host_gets_the_id_that_it_had() -> None:
    found = Starting()
    found.kept(7)
    found.kept(8, host="g")
    assert found.start().tried == [7]


def test_h03_an_id_that_another_broker_has_meanwhile_leads_on() -> None:
    found = Starting()
    found.kept(7)
    found.live(7)
    assert found.start().taken().tried == [7, 1001]
    adopting = Starting(adopts_missing_ids=True)
    adopting.kept(7)
    adopting.topic("t", 7, 5)
    adopting.live(7)
    assert adopting.start().taken().tried == [7, 5]


def test_h03_without_its_rule_the_host_gets_a_new_id() -> None:
    found = Starting("host_keeps_its_id")
    found.kept(7)
    assert found.start().tried == [1001]


def test_h04_the_one_missing_id_is_taken() -> None:
    found = Starting(adopts_missing_ids=True)
    found.topic("t", 1, 2)
    found.topic("long", 2, 3)
    found.live(1, 3)
    assert found.start().tried == [2]


def test_h04_several_missing_ids_are_an_error() -> None:
    def start(*rules_off: str) -> Starting:
        found = Starting(*rules_off, adopts_missing_ids=True)
        found.topic("t", 1, 2, 3)
        found.live(1)
        return found.start()

    found = start()
    assert found.tried == []
    assert found.errors == ["ids 2, 3 have no broker; any may belong to one that starts later"]
    assert start("one_missing_id_alone").tried == [2]


def test_h04_where_none_is_missing_or_b_is_not_adopted_an_id_is_new() -> None:
    nothing = Starting(adopts_missing_ids=True)
    nothing.topic("t", 1)
    nothing.live(1)
    assert nothing.start().tried == [1001]
    apart = Starting()
    apart.topic("t", 1)
    assert apart.start().tried == [1001]
    # One that is registered already, by hand: the next one of the sequence.
    assert apart.taken().tried == [1001, 1002]


def test_h04_an_id_that_another_newcomer_took_is_not_missing_any_more() -> None:
    found = Starting(adopts_missing_ids=True)
    found.topic("t", 1, 2)
    found.live(1)
    assert found.start().tried == [2]
    found.live(2)
    assert found.taken().tried == [2, 1001]


def test_h04_the_sequence_begins_above_the_reserved_ids() -> None:
    assert Starting(reserved_broker_id_max=0).start().tried == [1]
