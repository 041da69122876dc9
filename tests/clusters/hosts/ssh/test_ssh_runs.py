"""A scenario on machines over SSH, as a user starts it: the same file, the same verdict."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from far_machines import far_machines, inventory_of, why_no_machines
from own_nodes import OWN_NODES
from sealed_runs import sealed_table
from sshd import Sshd

from fencepost.harness.cli.main import main
from fencepost.harness.run.lock import WAIT_VARIABLE
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory

pytestmark = pytest.mark.slow

_TIMEOUT_S = 300 + float(os.environ[WAIT_VARIABLE])


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sshd, ...]]:
    with far_machines(3, directory=tmp_path_factory.mktemp("machines")) as machines:
        yield machines


@pytest.fixture(scope="module")
def inventory(machines: tuple[Sshd, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inventory_of(machines, directory=tmp_path_factory.mktemp("inventory"))


def _fencepost(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fencepost", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.skipif(why_no_machines() is not None, reason=str(why_no_machines()))
def test_a_smoke_run_over_ssh_is_valid_and_leaves_nothing_over_there(
    machines: tuple[Sshd, ...], inventory: Path, tmp_path: Path
) -> None:
    # Of two kinds of software; the next test has Kafka alone.
    ended = _fencepost(
        *("run", "smoke", "--time-limit", "8s", "--no-require", "--seed", "4", "--json"),
        *("--system", "kafka-zookeeper"),
        *("--host", "ssh", "--inventory", str(inventory), "--results", str(tmp_path)),
    )
    assert ended.returncode == 0, ended.stderr
    (said,) = json.loads(ended.stdout)
    assert said["validity"] == "valid"
    run = RunDirectory(Path(said["run"]))
    manifest = read_manifest(run.manifest_path)
    assert manifest.versions["host"] == "ssh"
    # Known only from what went over the proxy on this machine.
    assert {"broker-1", "broker-2", "broker-3"} <= set(
        sealed_table(run, "wire")["source"].to_pylist()
    )
    for one in machines:
        left = list((Path(one.machine.directory) / "runs").iterdir())
        assert left == []


@pytest.mark.spark
@pytest.mark.skipif(why_no_machines() is not None, reason=str(why_no_machines()))
@OWN_NODES
def test_nodes_of_our_own_run_over_there_on_a_copy_of_this_python(
    inventory: Path, tmp_path: Path, scenario: str, flags: tuple[str, ...]
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(scenario)
    ended = _fencepost(
        *("run", str(path), *flags, "--seed", "5", "--json"),
        *("--host", "ssh", "--inventory", str(inventory), "--results", str(tmp_path / "results")),
    )
    assert ended.returncode == 0, ended.stderr
    (said,) = json.loads(ended.stdout)
    faults = sealed_table(RunDirectory(Path(said["run"])), "faults")
    assert faults["kind"].to_pylist() == ["kill", "partition"]


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.skipif(why_no_machines() is not None, reason=str(why_no_machines()))
def test_power_is_lost_over_there_without_root(inventory: Path, tmp_path: Path) -> None:
    ended = _fencepost(
        *("run", "power-loss-of-all", "--seed", "4", "--json"),
        *("--host", "ssh", "--inventory", str(inventory), "--results", str(tmp_path)),
    )
    assert ended.returncode == 1, ended.stderr
    (said,) = json.loads(ended.stdout)
    assert said["checks"]["lost-write"]["validity"] == "invalid"
    assert said["checks"]["fault-effects"]["validity"] == "valid"
    manifest = read_manifest(RunDirectory(Path(said["run"])).manifest_path)
    assert manifest.versions["disks"] == "followed"


@pytest.mark.skipif(why_no_machines() is not None, reason=str(why_no_machines()))
def test_the_doctor_looks_at_every_machine(inventory: Path, machines: tuple[Sshd, ...]) -> None:
    ended = _fencepost("doctor", "--inventory", str(inventory), "--json")
    findings = {finding["what"]: finding for finding in json.loads(ended.stdout)}
    for one in machines:
        found = findings[f"machine {one.machine.host}"]
        assert found["ok"], found["way_out"]
        assert f"{one.machine.user} at {one.machine.directory}" in found["found"]


_RUN = ("run", "smoke", "--alongside", "--cluster", "kafka", "--host", "ssh")


def test_machines_that_nobody_named_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    said = _refused(capsys, *_RUN)
    assert "--host ssh needs to know the machines: --inventory FILE" in said


def test_an_inventory_is_refused_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "machines.yaml"
    path.write_text("machines:\n  - host: 10.0.0.1\n    colour: red\n")
    said = _refused(capsys, *_RUN, "--inventory", str(path))
    assert f"{path}:3: machines[0].colour: unknown; allowed: host" in said


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 254
    return capsys.readouterr().err
