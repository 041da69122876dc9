"""`fencepost serve` as a process: what it refuses, what it listens on, how it ends."""

import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

from fencepost.bench.serve import made_results

ROOT = Path(__file__).parents[3]


def started(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "fencepost", "serve", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def refused(*words: str) -> str:
    with started(*words) as process:
        out, said = process.communicate()
    assert (process.returncode, out) == (254, "")
    assert said.count("\n") == 1
    return said


def test_a_missing_directory_is_refused_with_the_way_out(tmp_path: Path) -> None:
    said = refused("--results", str(tmp_path / "none"))
    assert "there are no results in" in said
    assert "--results names another directory" in said


def test_a_port_in_use_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused("--results", str(tmp_path), "--port", str(port))
    assert f"port {port} on 127.0.0.1 cannot be used: Address already in use" in said
    assert "--port" in said


def test_a_wrong_file_of_known_issues_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "known.yaml"
    wrong.write_text("knwon: []\n")
    said = refused("--results", str(tmp_path), "--port", "0", "--known", str(wrong))
    assert "known.yaml:1" in said


def test_it_serves_on_this_machine_alone_and_ends_well(tmp_path: Path) -> None:
    made_results(tmp_path, runs=4, nights=2)
    with started("--results", str(tmp_path), "--port", "0") as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert "http://127.0.0.1:" in told
        port = int(told.split("127.0.0.1:")[1].split("/")[0])
        connection = HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        with socket.socket() as elsewhere:
            # All of 127.0.0.0/8 is this machine: one that listens on any address answers there.
            assert elsewhere.connect_ex(("127.0.0.2", port)) != 0
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "")
