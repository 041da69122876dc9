"""A container's process is seen to be what each call makes it, and nothing outlives the ledger."""

import json
import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencepost.clusters.hosts.docker.daemon import connected
from fencepost.clusters.hosts.docker.host import ContainerPlace, DockerHost
from fencepost.clusters.hosts.docker.image import release_in
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.tools import tool
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.history.failure import HarnessError, UsageError

pytestmark = [pytest.mark.docker, pytest.mark.alone]

SLEEP = ["sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done"]
HARNESS = """
import sys, time
from pathlib import Path
from fencepost.clusters.hosts.docker.host import DockerHost
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName

ledger = Ledger(run_id="doomed", directory=Path(sys.argv[1]))
warden = Warden(run_id="doomed", will=ledger.will)
say = lambda _: None
host = DockerHost(run_id="doomed", ledger=ledger, readable=(), image=None, progress=say).__enter__()
place = host.place(NodeName("broker-1"), directory=Path(sys.argv[1]) / "broker-1")
place.process.start(["sleep", "600"])
print(place.process.pid, place.address, flush=True)
time.sleep(600)
"""
DEAF = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerHost]:
    directory = tmp_path_factory.mktemp("ledger")
    with (
        Ledger(run_id="test/docker", directory=directory) as ledger,
        DockerHost(
            run_id="test/docker", ledger=ledger, readable=(), image=None, progress=print
        ) as host,
    ):
        yield host


@pytest.fixture
def place(host: DockerHost, tmp_path: Path) -> Iterator[ContainerPlace]:
    place = host.place(NodeName("broker-1"), directory=tmp_path / "broker-1")
    yield place
    place.process.kill()


@pytest.fixture
def up(place: ContainerPlace, until: Callable[..., bool]) -> Callable[[list[str]], None]:
    def start(argv: list[str]) -> None:
        said = place.size_bytes("server.log")
        place.process.start(argv)
        assert until(lambda: place.size_bytes("server.log") > said)

    return start


def test_it_goes_through_all_states_and_comes_back_with_its_address(
    place: ContainerPlace, up: Callable[[list[str]], None]
) -> None:
    process = place.process
    assert (process.state(), process.pid, process.exit_code) == (NodeState.DOWN, None, None)
    up(SLEEP)
    assert process.state() is NodeState.RUNNING
    assert place.address in _addresses_of(process.pid)
    process.pause()
    assert process.state() is NodeState.PAUSED
    process.resume()
    assert process.state() is NodeState.RUNNING
    with pytest.raises(HarnessError, match=r"broker-1 is running \(pid \d+\)"):
        process.start(SLEEP)
    process.pause()
    process.kill()
    assert (process.state(), process.exit_code) == (NodeState.DOWN, -9)
    up(SLEEP)
    assert place.address in _addresses_of(process.pid)
    assert process.stop(timeout_s=10)
    assert process.exit_code == 5
    with pytest.raises(HarnessError, match="broker-1 is down: it cannot become paused"):
        process.pause()


def test_a_process_that_is_deaf_to_sigterm_is_killed_at_the_bound(
    place: ContainerPlace, up: Callable[[list[str]], None]
) -> None:
    up(DEAF)
    assert not place.process.stop(timeout_s=0.1)
    assert place.process.exit_code == -9


def test_an_environment_is_of_one_start_alone_and_its_output_is_appended(
    place: ContainerPlace, until: Callable[..., bool]
) -> None:
    said = ["sh", "-c", "echo $COLOUR.; exit 3"]
    for env in ({"COLOUR": "green"}, None):
        place.process.start(said, env)
        assert until(lambda: place.process.exit_code == 3)
    assert place.fetch("server.log").read_text() == "green.\n.\n"


def test_what_cannot_be_run_says_so_in_the_log(
    place: ContainerPlace, until: Callable[..., bool]
) -> None:
    place.process.start(["/nowhere/java"])
    assert until(lambda: place.process.exit_code == 127)
    assert "/nowhere/java: not found" in place.fetch("server.log").read_text()


def test_one_beyond_its_memory_is_killed_and_its_log_says_why(
    place: ContainerPlace, until: Callable[..., bool]
) -> None:
    grows = "s=x; while :; do s=$s$s; done  # -Xmx1m"
    place.process.start(["sh", "-c", grows, "sh", "-Xmx1m"])
    assert until(lambda: place.process.exit_code is not None)
    assert place.process.exit_code == -9
    assert "out of memory: its limit is 514 MiB" in place.fetch("server.log").read_text()


def test_a_node_reaches_a_link_address_of_this_machine_and_is_told_apart_by_it(
    host: DockerHost, place: ContainerPlace, up: Callable[[list[str]], None]
) -> None:
    assert place.namespace() is None
    up(SLEEP)
    address = host.link_address(1, 2)
    with socket.create_server((address, 0)) as server:
        server.settimeout(10)
        port = server.getsockname()[1]
        dial = f"import socket; socket.create_connection(('{address}', {port}), 10)"
        enter = ["nsenter", f"--net={place.namespace()}"]
        with subprocess.Popen([*enter, sys.executable, "-c", dial]) as dialling:
            connection, peer = server.accept()
            connection.close()
            dialling.wait(10)
    assert peer[0] == place.address


def test_nothing_is_left_of_a_run_whose_harness_is_killed(
    tmp_path: Path, until: Callable[..., bool]
) -> None:
    command = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        pid, address = harness.stdout.readline().split()
        [ledger] = tmp_path.glob("*.jsonl")
        assert f"fpd-{harness.pid}" in tool("ip", "route", "get", address)
        assert Path(f"/proc/{pid}").exists()
        harness.kill()
    assert until(lambda: not ledger.exists(), timeout_s=60)
    assert not Path(f"/proc/{pid}").exists()
    assert f"fpd-{harness.pid}" not in tool("ip", "link")
    left = tool("ip", "route", "show", "table", "all", "to", "match", address)
    assert all(line.startswith("default") for line in left.splitlines())


def test_an_image_that_docker_has_not_is_refused_by_name(tmp_path: Path) -> None:
    with (
        Ledger(run_id="test/image", directory=tmp_path) as ledger,
        pytest.raises(UsageError, match="Docker has no image nobody/has:this; fetch it first"),
        DockerHost(run_id="t", ledger=ledger, readable=(), image="nobody/has:this", progress=print),
    ):
        pass


def test_the_jars_of_a_distribution_inside_an_image_are_copied_out_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    libs = tmp_path / "root" / "opt" / "kafka" / "libs"
    libs.mkdir(parents=True)
    (libs / "kafka-clients-9.9.9.jar").write_bytes(b"classes")
    (libs / "README").touch()
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.add(tmp_path / "root", arcname=".")
    image = f"fencepost-test:{os.getpid()}"
    said: list[str] = []
    with connected() as daemon:
        name, _, tag = image.partition(":")
        daemon.import_image(tmp_path / "root.tar", repository=name, tag=tag)
        try:
            home = release_in(image, "/opt/kafka", daemon=daemon, progress=said.append)
            assert release_in(image, "/opt/kafka/", daemon=daemon, progress=said.append) == home
            with pytest.raises(UsageError, match=f"{image} has no /opt/none/libs"):
                release_in(image, "/opt/none", daemon=daemon, progress=said.append)
        finally:
            daemon._client.remove_image(image)
    assert [jar.name for jar in home.glob("libs/*")] == ["kafka-clients-9.9.9.jar"]
    assert said[0] == f"copying /opt/kafka out of the image {image}"
    assert len(said) == 2


def test_no_daemon_is_one_line_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    expected = "no Docker daemon answers at unix:///nowhere/docker.sock: No such file or directory"
    with pytest.raises(HarnessError, match=expected):
        connected()


def _addresses_of(pid: int | None) -> list[str]:
    listed = tool("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-json", "-4", "address")
    return [one["local"] for link in json.loads(listed) for one in link["addr_info"]]
