"""What is sent from one node to another is dropped, whoever dialled, and nothing else is."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from fencepost.clusters.hosts.inside import socket_in
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.namespaces import NamespaceHost, NamespacePlace, why_no_namespaces
from fencepost.clusters.hosts.packets import Forbidden, rules_text
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.multi_node_requests import is_answered
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.networks import NodeNetworks, forbidden
from fencepost.history.failure import HarnessError, UsageError

pytestmark = pytest.mark.slow

ONE, TWO, THREE = (NodeName(f"broker-{number}") for number in (1, 2, 3))
CLIENTS = NodeName("clients")
ADDRESSES = {ONE: "10.0.0.1", TWO: "10.0.0.2"}

NUMBERS = {CLIENTS: 0, ONE: 1, TWO: 2, THREE: 3}
WHY_NOT = why_no_namespaces()
needs_namespaces = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
needs_nft = pytest.mark.skipif(which("nft") is None, reason="there is no nft (install nftables)")


def test_a_one_way_cut_forbids_one_end_to_tell_and_the_other_to_hear() -> None:
    cut = forbidden([(ONE, TWO)], addresses=ADDRESSES, route=lambda _source, _target: None)
    assert cut == {
        ONE: Forbidden(told=frozenset({"10.0.0.2"})),
        TWO: Forbidden(heard=frozenset({"10.0.0.1"})),
    }


def test_behind_a_proxy_both_links_between_the_two_are_cut() -> None:
    cut = forbidden(
        [(ONE, TWO)],
        addresses=ADDRESSES,
        route=lambda source, target: f"10.1.{NUMBERS[source]}.{NUMBERS[target]}",
    )
    links = {"10.1.1.2", "10.1.2.1"}
    assert cut[ONE] == Forbidden(told=frozenset({"10.0.0.2", *links}))
    assert cut[TWO] == Forbidden(heard=frozenset({"10.0.0.1", *links}))


def test_the_rules_of_a_cut_replace_those_it_had() -> None:
    text = rules_text("cut1", Forbidden(heard=frozenset({"10.0.0.2", "10.0.0.1"})))
    assert text.splitlines() == [
        "add table inet fencepost",
        "add chain inet fencepost cut1_in { type filter hook input priority 0; }",
        "flush chain inet fencepost cut1_in",
        "add rule inet fencepost cut1_in ip saddr { 10.0.0.1, 10.0.0.2 } counter drop",
        "add chain inet fencepost cut1_out { type filter hook output priority 0; }",
        "flush chain inet fencepost cut1_out",
    ]


def test_nodes_that_share_the_machines_network_have_no_packets_to_drop(
    tmp_path: Path, warden: Warden
) -> None:
    places = {ONE: LocalHost(warden).place(ONE, directory=tmp_path)}
    networks = NodeNetworks(places, route=lambda _source, _target: None, is_answered=is_answered)
    assert "--host netns" in (networks.refusal() or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two nodes, and what may be done to their packets."""

    host: NamespaceHost
    places: dict[NodeName, NamespacePlace]
    networks: NodeNetworks

    def server(self, node: NodeName) -> socket.socket:
        """Listens at the node's address."""
        server = socket_in(self.places[node].namespace())
        server.bind((self.places[node].address, 9092))
        server.listen()
        server.settimeout(10)
        return server

    def client(self, node: NodeName) -> socket.socket:
        """Not connected yet."""
        return socket_in(self.places[node].namespace())

    def connects(self, source: NodeName, address: str, *, within_s: float) -> bool:
        """Whether somebody there accepts a connection in time."""
        with self.client(source) as client:
            client.settimeout(within_s)
            return client.connect_ex((address, 9092)) == 0


@pytest.fixture
def stage(tmp_path: Path, warden: Warden) -> Iterator[Stage]:
    with (
        Ledger(run_id="test", directory=tmp_path) as ledger,
        NamespaceHost(warden, ledger=ledger) as host,
    ):
        places = {node: host.place(node, directory=tmp_path / node) for node in (ONE, TWO)}
        networks = NodeNetworks(
            places,
            route=lambda source, target: (
                host.link_address(NUMBERS[source], NUMBERS[target]) if source != CLIENTS else None
            ),
            is_answered=is_answered,
        )
        yield Stage(host=host, places=places, networks=networks)


@needs_namespaces
@needs_nft
def test_only_what_one_sends_to_the_other_is_lost_until_it_passes_again(stage: Stage) -> None:
    assert stage.networks.refusal() is None
    with stage.server(ONE) as server, stage.client(TWO) as two:
        two.connect((stage.places[ONE].address, 9092))
        one, _ = server.accept()
        with one:
            stage.networks.drop_packets("cut", {(ONE, TWO)})
            two.sendall(b"heard")
            one.settimeout(10)
            assert one.recv(10) == b"heard"
            one.sendall(b"told")
            two.settimeout(0.5)
            with pytest.raises(TimeoutError):
                two.recv(10)
            assert stage.networks.pass_packets("cut") >= 1
            two.settimeout(20)
            assert two.recv(10) == b"told"


@needs_namespaces
@needs_nft
def test_a_connection_is_cut_whoever_dials_it_and_on_the_way_over_a_proxy(stage: Stage) -> None:
    link = stage.host.link_address(1, 2)
    own = {node: stage.places[node].address for node in (ONE, TWO)}
    with (
        stage.server(ONE),
        stage.server(TWO),
        socket.create_server((link, 9092)),
    ):
        stage.networks.drop_packets("cut", {(ONE, TWO)})
        stage.networks.drop_packets("also", {(ONE, TWO), (TWO, ONE)})
        stage.networks.pass_packets("also")
        for source, address in ((ONE, own[TWO]), (TWO, own[ONE]), (ONE, link)):
            assert not stage.connects(source, address, within_s=0.5)
        with socket.socket() as proxy:
            proxy.bind((link, 0))
            proxy.settimeout(0.5)
            assert proxy.connect_ex((own[TWO], 9092)) != 0
        # The harness, on no link, finds every node.
        socket.create_connection((own[TWO], 9092), timeout=10).close()
        stage.networks.pass_packets("cut")
        for source, address in ((ONE, own[TWO]), (TWO, own[ONE]), (ONE, link)):
            assert stage.connects(source, address, within_s=10)


@needs_namespaces
def test_clients_that_are_not_behind_the_proxy_cannot_be_told_apart(stage: Stage) -> None:
    with pytest.raises(UsageError, match="clients_through_proxy"):
        stage.networks.drop_packets("cut", {(CLIENTS, ONE)})


@needs_namespaces
def test_what_a_node_sends_is_bounded_and_free_again(stage: Stage) -> None:
    assert stage.networks.limit_bandwidth(ONE, bits_per_s=2_000_000) < 3_000_000
    stage.networks.renew(ONE)
    stage.networks.free_bandwidth(ONE)
    stage.networks.free_bandwidth(ONE)
    assert stage.networks.limit_bandwidth(ONE, bits_per_s=50_000_000) > 3_000_000
    with pytest.raises(HarnessError, match="cannot open a socket there"):
        socket_in(Path("/run/netns/fp-that-never-was"))
