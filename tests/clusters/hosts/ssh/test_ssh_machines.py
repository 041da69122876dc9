"""Against a real sshd: who is let in, what is carried, and that nothing outlives the harness."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from sshd import Sshd, start_sshd, why_no_sshd

from fencepost.clusters.hosts.process import process_state
from fencepost.clusters.hosts.ssh.connection import SshConnection
from fencepost.clusters.hosts.ssh.warden import RemoteWarden, Way
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError, UsageError

_BOUND_S = 60.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_no_sshd() is not None, reason=str(why_no_sshd())),
]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Warden(run_id="tests/sshd") as warden:
        yield start_sshd(tmp_path_factory.mktemp("sshd"), warden=warden)


@pytest.fixture
def connection(sshd: Sshd) -> Iterator[SshConnection]:
    with SshConnection(sshd.machine, known_hosts=sshd.known_hosts) as connection:
        yield connection


@pytest.fixture
def warden(connection: SshConnection, tmp_path: Path) -> Iterator[RemoteWarden]:
    directory = PurePosixPath(tmp_path) / "far"
    with RemoteWarden(
        connection, run_id="tests/ssh", home=directory, directory=directory / "run"
    ) as warden:
        yield warden


def test_an_unknown_key_is_refused_with_the_command_that_accepts_it(
    sshd: Sshd, tmp_path: Path
) -> None:
    accepted = tmp_path / "known_hosts"
    with pytest.raises(UsageError, match="is not known: its ssh-ed25519 key is SHA256:") as raised:
        SshConnection(sshd.machine, known_hosts=accepted)
    command = str(raised.value).partition("accept it with: ")[2]
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    SshConnection(sshd.machine, known_hosts=accepted).close()


def test_another_key_than_the_known_one_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    other = (sshd.known_hosts.with_name("user_key.pub")).read_text().split()[1]
    name = sshd.known_hosts.read_text().split()[0]
    known.write_text(f"{name} ssh-ed25519 {other}\n")
    with pytest.raises(UsageError, match="another host key than the known one"):
        SshConnection(sshd.machine, known_hosts=known)


def test_a_key_that_opens_nothing_is_refused_by_name(sshd: Sshd) -> None:
    stranger = replace(sshd.machine, identity=sshd.known_hosts.with_name("host_key"))
    with pytest.raises(UsageError, match=r"refused the login .*host_key"):
        SshConnection(stranger, known_hosts=sshd.known_hosts)


def test_nobody_at_the_port_is_one_clear_line(sshd: Sshd) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = replace(sshd.machine, port=taken.getsockname()[1])
        with pytest.raises(HarnessError, match=f"127.0.0.1:{nobody.port} cannot be reached"):
            SshConnection(nobody, known_hosts=sshd.known_hosts)


def test_a_directory_goes_up_and_comes_back_as_it_was(
    connection: SshConnection, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below" / "file").write_bytes(bytes(range(256)) * 1000)
    with (source / "sparse").open("wb") as sparse:
        sparse.truncate(10 << 20)
    far = PurePosixPath(tmp_path) / "far"
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "old").write_text("goes away")
    connection.put(source, far)
    connection.get(far, tmp_path / "back")
    names = sorted(str(p.relative_to(tmp_path / "back")) for p in (tmp_path / "back").rglob("*"))
    assert names == ["below", "below/file", "sparse"]
    assert (tmp_path / "back/below/file").read_bytes() == (source / "below/file").read_bytes()
    assert (tmp_path / "back/sparse").stat().st_size == 10 << 20


def test_what_is_not_there_cannot_be_copied(connection: SshConnection, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"cannot copy .*missing.*No such file"):
        connection.get(PurePosixPath(tmp_path) / "missing", tmp_path / "back")


def test_a_process_over_there_is_paused_killed_and_reaped(
    warden: RemoteWarden, tmp_path: Path
) -> None:
    pid = warden.spawn(["sleep", "600"], name="node", log=tmp_path / "log")
    assert warden.state(pid) is NodeState.RUNNING
    warden.signal(pid, signal.SIGSTOP)
    _await(lambda: warden.state(pid) is NodeState.PAUSED)
    usage = warden.usage(pid)
    assert usage is not None
    assert usage.rss_bytes > 0
    warden.signal(pid, signal.SIGKILL)
    assert warden.wait(pid, timeout_s=_BOUND_S) == -signal.SIGKILL
    assert warden.state(pid) is NodeState.DOWN
    assert warden.usage(pid) is None


def test_a_program_that_is_not_there_is_named(warden: RemoteWarden, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="node was not started: cannot run /no/such"):
        warden.spawn(["/no/such"], name="node", log=tmp_path / "log")


def test_connections_are_led_where_the_way_says(warden: RemoteWarden, sshd: Sshd) -> None:
    here = ("127.210.1.1", warden.reserve(1, address="127.210.1.2")[0])
    way = Way(
        address=here[0], port=here[1], far_address=sshd.machine.host, far_port=sshd.machine.port
    )
    warden.relay([way])
    with socket.create_connection(here, timeout=_BOUND_S) as connection:
        assert connection.recv(64).startswith(b"SSH-2.0")


def test_a_port_that_is_taken_is_refused_by_its_number(warden: RemoteWarden) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be used"):
            warden.reserve(1, address="127.0.0.1", base=port)


def test_closing_leaves_no_process_over_there(connection: SshConnection, tmp_path: Path) -> None:
    directory = PurePosixPath(tmp_path) / "far"
    with RemoteWarden(
        connection, run_id="tests/ssh", home=directory, directory=directory / "run"
    ) as warden:
        pid = warden.spawn(["sleep", "600"], name="node", log=tmp_path / "log")
    assert process_state(pid) is NodeState.DOWN
    assert not (tmp_path / "far/run").exists()
    with pytest.raises(HarnessError, match="is closed"):
        warden.signal(pid, signal.SIGTERM)


def test_a_harness_killed_with_9_leaves_nothing_over_there(sshd: Sshd, tmp_path: Path) -> None:
    script = tmp_path / "harness.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path, PurePosixPath\n"
        "from fencepost.clusters.hosts.ssh.connection import SshConnection\n"
        "from fencepost.clusters.hosts.ssh.inventory import Machine\n"
        "from fencepost.clusters.hosts.ssh.warden import RemoteWarden\n"
        f"machine = Machine(host={sshd.machine.host!r}, port={sshd.machine.port},"
        f" user={sshd.machine.user!r}, identity=Path({str(sshd.machine.identity)!r}))\n"
        f"connection = SshConnection(machine, known_hosts=Path({str(sshd.known_hosts)!r}))\n"
        f"far = PurePosixPath({str(tmp_path)!r}) / 'far'\n"
        "warden = RemoteWarden(connection, run_id='tests/killed', home=far, "
        "directory=far / 'run')\n"
        f"log = Path({str(tmp_path)!r}) / 'log'\n"
        "print(warden.spawn(['sleep', '600'], name='node', log=log), flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, str(script)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as harness:
        assert harness.stdout is not None
        pid = int(harness.stdout.readline())
        assert process_state(pid) is NodeState.RUNNING
        os.kill(harness.pid, signal.SIGKILL)
        _await(lambda: process_state(pid) is NodeState.DOWN)


def _await(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + _BOUND_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
