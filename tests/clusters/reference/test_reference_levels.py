"""A cluster of processes is upgraded by UpdateFeatures: what is spoken changes with the level."""

from collections.abc import Callable, Iterator

import pytest

from clusters.hosts.local_host import LocalHost
from clusters.hosts.place import LOOPBACK
from clusters.hosts.warden import Warden
from clusters.kafka.configuration import Listener
from clusters.kafka.connection import NoAnswerError, NodeConnection
from clusters.kafka_port import KafkaSpec
from clusters.port import NodeName
from clusters.protocol.talking import Address
from clusters.reference.codec.entities import built, request_type, response_type
from clusters.reference.driver import ReferenceCluster
from history.clock import Clock

pytestmark = pytest.mark.slow

ONE, CONTROLLER = NodeName("broker-1"), NodeName("controller-1")
_VERSIONS, _FEATURES = 18, 57

Until = Callable[..., bool]


@pytest.fixture
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Address, Address]]:
    """The broker and the controller of a cluster of the lowest level."""
    with Warden(run_id="levels") as warden:
        cluster = ReferenceCluster(
            KafkaSpec(brokers=1, metadata_version="1"),
            host=LocalHost(warden),
            directory=tmp_path_factory.mktemp("nodes"),
            clock=Clock.start(),
        )
        try:
            cluster.start()
            yield (
                (LOOPBACK, cluster.port_of(ONE, Listener.CLIENT)),
                (LOOPBACK, cluster.port_of(CONTROLLER, Listener.CONTROLLER)),
            )
        finally:
            cluster.stop()


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
