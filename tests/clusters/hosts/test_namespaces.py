"""Nodes in namespaces find each other and the machine, nobody else, and leave nothing behind."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.namespaces import NamespaceHost, NamespacePlace, why_no_namespaces
from fencepost.clusters.hosts.tools import tool
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName, NodeState

Until = Callable[..., bool]

WHY_NOT = why_no_namespaces()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]

ONE, TWO = NodeName("broker-1"), NodeName("broker-2")

SERVER = """
import socket, sys
with socket.create_server((sys.argv[1], 9092)) as server:
    while True:
        near, peer = server.accept()
        near.sendall(peer[0].encode())
        near.close()
"""

HARNESS = """
import sys, time
from pathlib import Path
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.namespaces import NamespaceHost
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName

ledger = Ledger(run_id="doomed", directory=Path(sys.argv[1]))
warden = Warden(run_id="doomed", will=ledger.will)
host = NamespaceHost(warden, ledger=ledger).__enter__()
places = [host.place(NodeName(f"broker-{n}"), directory=Path(sys.argv[1]) / str(n)) for n in (1, 2)]
for place in places:
    place.process.start(["sleep", "600"])
print(*(place.process.pid for place in places), flush=True)
time.sleep(600)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(run_id="test", directory=tmp_path) as it:
        yield it


@pytest.fixture
def host(ledger: Ledger, warden: Warden) -> Iterator[NamespaceHost]:
    with NamespaceHost(warden, ledger=ledger) as it:
        yield it


@pytest.fixture
def places(host: NamespaceHost, tmp_path: Path) -> list[NamespacePlace]:
    return [host.place(node, directory=tmp_path / node) for node in (ONE, TWO)]


def asked_from(place: NamespacePlace, address: str) -> str:
    """What a server answers to a client in this place."""
    program = f"""
import socket
with socket.create_connection(({address!r}, 9092), timeout=60) as far:
    print(far.recv(100).decode())
"""
    command = ("nsenter", f"--net={place.namespace()}", "--", sys.executable, "-c", program)
    return tool(*command).strip()


def listening(address: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, 9092)) == 0


def test_a_node_is_found_at_its_address_and_is_a_process_of_this_machine(
    places: list[NamespacePlace], until: Until
) -> None:
    one, two = places
    one.process.start([sys.executable, "-c", SERVER, one.address])
    assert one.process.pid is not None
    command = Path(f"/proc/{one.process.pid}/cmdline")
    assert until(lambda: listening(one.address))
    assert command.read_bytes().startswith(sys.executable.encode())
    assert asked_from(two, one.address) == two.address
    one.process.pause()
    assert one.process.state() is NodeState.PAUSED
    one.process.kill()
    assert not listening(one.address)


def test_a_node_reaches_a_link_address_and_nothing_beyond_the_subnet(
    host: NamespaceHost, places: list[NamespacePlace]
) -> None:
    link = host.link_address(1, 2)
    with socket.create_server((link, 9092)) as proxy:
        proxy.settimeout(10)
        program = f"import socket; socket.create_connection(({link!r}, 9092), 9).recv(1)"
        enter = ["nsenter", f"--net={places[0].namespace()}", "--"]
        client = subprocess.Popen([*enter, sys.executable, "-c", program])
        near, (source, _) = proxy.accept()
        near.close()
        assert client.wait(timeout=10) == 0
    assert source == places[0].address
    ways_out = json.loads(tool("ip", "-n", places[0].namespace().name, "-json", "route"))
    [on_link] = ways_out
    subnet = IPv4Network(on_link["dst"])
    assert IPv4Network(link).subnet_of(subnet)
    assert "gateway" not in on_link


def test_a_packet_to_a_node_that_is_gone_never_leaves_the_machine(
    places: list[NamespacePlace],
) -> None:
    tool("ip", "link", "delete", places[0].namespace().name.partition("-")[0])
    with socket.socket() as client:
        client.settimeout(5)
        with pytest.raises(OSError, match="No route to host"):
            client.connect((places[0].address, 9092))


def of_ours(prefix: str, subnet: str) -> list[str]:
    """Namespaces, interfaces and routes of one run."""
    found = [path.name for path in Path("/run/netns").glob(f"{prefix}-*")]
    found += [path.name for path in Path("/sys/class/net").glob(f"{prefix}*")]
    routes = json.loads(tool("ip", "-4", "-json", "route", "show", "table", "all"))
    within = IPv4Network(subnet)
    found += [
        one["dst"]
        for one in routes
        if one["dst"] != "default" and IPv4Network(one["dst"]).subnet_of(within)
    ]
    return found


def made_by(ledger: Path) -> tuple[str, str]:
    """The prefix and the subnet that a ledger speaks of."""
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    undos = [line["undo"] for line in lines if "undo" in line]
    [prefix] = [undo["name"] for undo in undos if undo["kind"] == "RemoveInterface"]
    subnet = next(undo["route"] for undo in undos if "unreachable" in undo.get("route", ""))
    return prefix, subnet.split()[1]


def test_nothing_is_left_of_a_run_whose_harness_is_killed(tmp_path: Path, until: Until) -> None:
    command = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        pids = [int(pid) for pid in harness.stdout.readline().split()]
        assert len(pids) == 2
        [ledger] = tmp_path.glob("*.jsonl")
        prefix, subnet = made_by(ledger)
        # Three namespaces, one interface; the guard, the links', and what comes with an address.
        assert len(of_ours(prefix, subnet)) >= 6
        harness.kill()
    assert until(lambda: not ledger.exists())
    assert of_ours(prefix, subnet) == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_nothing_is_left_of_a_run_that_ended(tmp_path: Path) -> None:
    with (
        Ledger(run_id=f"ended-{os.getpid()}", directory=tmp_path) as ledger,
        Warden(run_id="ended", will=ledger.will) as warden,
        NamespaceHost(warden, ledger=ledger) as host,
    ):
        place = host.place(ONE, directory=tmp_path / ONE)
        place.process.start(["sleep", "600"])
        prefix, subnet = made_by(ledger.path)
    assert of_ours(prefix, subnet) == []
    assert not ledger.path.exists()
