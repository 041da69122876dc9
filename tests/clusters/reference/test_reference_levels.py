"""A cluster of processes is upgraded by UpdateFeatures: what is spoken changes with the level."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import LOOPBACK, Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.configuration import Listener
from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.entities import built, request_type, response_type
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.slow

ONE, TWO, CONTROLLER = NodeName("broker-1"), NodeName("broker-2"), NodeName("controller-1")
_VERSIONS, _FEATURES = 18, 57

Until = Callable[..., bool]


@contextmanager
def started(directory: Path, *, brokers: int, **settings: str) -> Iterator[ReferenceCluster]:
    """A cluster of the lowest level."""
    with Warden(run_id="levels") as warden:
        cluster = ReferenceCluster(
            KafkaSpec(brokers=brokers, metadata_version="1", settings=settings),
            site=Site(host=LocalHost(warden), directory=directory, clock=Clock.start()),
        )
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def addresses_of(cluster: ReferenceCluster) -> tuple[Address, Address]:
    """The first broker and the controller."""
    return (
        (LOOPBACK, cluster.port_of(ONE, Listener.CLIENT)),
        (LOOPBACK, cluster.port_of(CONTROLLER, Listener.CONTROLLER)),
    )


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[tuple[Address, Address]]:
    """The broker and the controller of a cluster of the lowest level."""
    with started(tmp_path, brokers=1) as cluster:
        yield addresses_of(cluster)


def _offered(address: Address) -> tuple[int, int]:
    """(the level, the highest version of Fetch) as the broker offers them; (0, 0): it does not."""
    with NodeConnection(address, client_id="test") as broker:
        try:
            found = broker.ask(
                built(request_type(_VERSIONS, 3), {}), response_type(_VERSIONS, 3), timeout_s=60
            )
        except NoAnswerError:
            return (0, 0)
    levels = {one.name: one.max_version_level for one in found.finalized_features}
    versions = {one.api_key: one.max_version for one in found.api_keys}
    return levels["metadata.version"], versions[1]


def _updated(address: Address, level: int) -> int:
    update = {"feature": "metadata.version", "max_version_level": level, "upgrade_type": 1}
    request = built(request_type(_FEATURES, 1), {"timeout": 5000, "feature_updates": [update]})
    with NodeConnection(address, client_id="test") as controller:
        found = controller.ask(request, response_type(_FEATURES, 1), timeout_s=10)
    code: int = found.error_code.value
    return code or max(one.error_code.value for one in found.results)


def test_e07_a_finalised_upgrade_changes_what_is_offered(
    addresses: tuple[Address, Address], until: Until
) -> None:
    broker, controller = addresses
    assert _offered(broker) == (1, 14)
    assert _updated(controller, 9) != 0
    for level in (2, 3):
        assert _updated(controller, level) == 0
        assert until(lambda level=level: _offered(broker) == (level, 15))


def test_an_upgrade_is_answered_by_the_broker_that_passes_it_on(
    addresses: tuple[Address, Address], until: Until
) -> None:
    broker, _ = addresses
    for level in (2, 3):
        assert _updated(broker, level) == 0
        assert until(lambda level=level: _offered(broker) == (level, 15))


def test_v05_connections_are_closed_so_that_clients_negotiate_again(
    addresses: tuple[Address, Address], until: Until
) -> None:
    broker, controller = addresses
    request, kind = built(request_type(_VERSIONS, 3), {}), response_type(_VERSIONS, 3)
    with NodeConnection(broker, client_id="old") as old:
        old.ask(request, kind, timeout_s=60)
        assert _updated(controller, 3) == 0

        def is_closed() -> bool:
            try:
                old.ask(request, kind, timeout_s=60)
            except NoAnswerError:
                return True
            return False

        assert until(is_closed)


def test_v05_brokers_negotiate_with_each_other_again(tmp_path: Path, until: Until) -> None:
    """From level 2 on a follower joins the ISR only by fetches that name its broker epoch."""
    with started(tmp_path, brokers=2, **{"replica.lag.time.max.ms": "1000"}) as cluster:
        cluster.create_topics([TopicSpec(name="t", assignment=((1, 2),))])

        def has_isr(*isr: int) -> bool:
            try:
                seen = cluster.view().partitions.get("t-0")
            except HarnessError:
                return False
            return seen is not None and set(seen.isr) == set(isr)

        assert until(lambda: has_isr(1, 2))
        broker, controller = addresses_of(cluster)
        assert _updated(controller, 3) == 0
        assert until(lambda: _offered(broker) == (3, 15))
        cluster.pause_node(TWO)
        assert until(lambda: has_isr(1))
        cluster.resume_node(TWO)
        assert until(lambda: has_isr(1, 2))
