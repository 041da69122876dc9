"""Whole runs on real Apache Kafka, as a user starts them: `fencepost …` in a process of its own."""

import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from commands import Fencepost
from sealed_runs import sealed_table

from fencepost.harness.run.lock import WAIT_VARIABLE
from fencepost.history.counts import live_counts
from fencepost.history.manifest import RunState, read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RUN_TABLES

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.usefixtures("nothing_is_left_behind"),
]

FENCEPOST = (sys.executable, "-m", "fencepost")
SHORT = ("--time-limit", "12s", "--seed", "5", "--no-require")
"""Too short for each kind of fault that the scenario demands."""
KILLS = int(os.environ.get("FENCEPOST_KILLS", "1"))
"""Runs that are killed, each at another moment; the full proof takes 20."""
OTHER_RUNS_S = float(os.environ[WAIT_VARIABLE])
"""Until a run of a test has the machine."""
OURS = ("--cluster", "reference")
"""Where a claim is about the harness alone, the nodes need not be Kafka's."""


def in_a_process(*arguments: str, results: Path) -> "subprocess.CompletedProcess[str]":
    """As a user starts it."""
    return subprocess.run(
        [*FENCEPOST, *arguments],
        env={**os.environ, "FENCEPOST_RESULTS": str(results)},
        capture_output=True,
        text=True,
        timeout=OTHER_RUNS_S + 300,
        check=False,
    )


def await_(
    what: str, reached: Callable[[], bool], *, timeout_s: float = OTHER_RUNS_S + 120
) -> None:
    deadline = time.monotonic() + timeout_s
    while not reached():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def smoke(results: Path) -> tuple[dict[str, Any], RunDirectory]:
    """One short smoke run and what `--json` said of it."""
    ended = in_a_process("run", "smoke", *SHORT, "--json", results=results)
    assert ended.returncode == 0, ended.stderr
    (said,) = json.loads(ended.stdout)
    return said, RunDirectory(Path(said["run"]))


def test_a_smoke_run_is_valid_and_leaves_its_evidence(
    smoke: tuple[dict[str, Any], RunDirectory],
) -> None:
    said, run = smoke
    assert said["validity"] == "valid"
    # A run of which something was waived is no gate.
    assert said["as_expected"] is None
    answers = {check["validity"] for check in said["checks"].values()}
    assert answers <= {"valid", "not judged", "figure"}
    assert read_manifest(run.manifest_path).state is RunState.CHECKED
    for path in (run.report_path, run.junit_path, run.verdict_path, run.play_path):
        assert path.is_file(), path
    assert not list(run.nodes.glob("*/disk"))
    assert len(list(run.nodes.glob("*/server.log"))) == 4


def test_every_fault_of_a_smoke_run_took_effect_and_healed(
    smoke: tuple[dict[str, Any], RunDirectory],
) -> None:
    _, run = smoke
    faults = sealed_table(run, "faults").to_pylist()
    assert faults
    for fault in faults:
        assert fault["begin_ns"] <= fault["effect_ns"] <= fault["end_ns"], fault


def test_a_stored_run_is_judged_again_to_the_same_verdict(
    fencepost: Fencepost, smoke: tuple[dict[str, Any], RunDirectory], results: Path
) -> None:
    said, run = smoke
    ended = fencepost("check", "smoke", "--json", results=results)
    assert ended.returncode == 0, ended.stderr
    assert ended.run.root == run.root.resolve()
    assert ended.said["checks"] == said["checks"]


def test_a_replay_performs_what_the_run_performed(
    fencepost: Fencepost, smoke: tuple[dict[str, Any], RunDirectory], tmp_path: Path
) -> None:
    _, run = smoke
    ended = fencepost("replay", str(run.root), "--json", results=tmp_path)
    assert ended.returncode == 0, ended.stderr

    def acts(of: RunDirectory) -> list[dict[str, object]]:
        steps = yaml.safe_load(of.play_path.read_text())
        return [{k: step[k] for k in step if k != "at"} for step in steps if "await" not in step]

    first = acts(run)
    assert acts(ended.run)[: len(first)] == first


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace of its own takes root")
def test_a_warm_run_needs_no_network_and_without_the_fault_the_same_clients_are_valid(
    smoke: tuple[dict[str, Any], RunDirectory], tmp_path: Path
) -> None:
    """With nothing but loopback up, a resolver asked for IPv4 alone finds not even 127.0.0.1."""
    del smoke  # the release is in the cache by then
    command = [*FENCEPOST, "run", "unclean-election", "--nemesis", "none", "--time-limit", "5s"]
    ended = subprocess.run(
        ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {shlex.join(command)}"],
        env={**os.environ, "FENCEPOST_RESULTS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=OTHER_RUNS_S + 300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_an_unclean_election_loses_acknowledged_writes_and_the_verdict_says_which(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost("run", "unclean-election", "--json", results=tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert ended.said["as_expected"] is True
    lost = pq.read_table(ended.run.anomalies / "lost-write.parquet").to_pylist()
    assert lost
    sends = sealed_table(ended.run, "operations").to_pandas().set_index("index")
    for anomaly in lost[:50]:
        operation = sends.loc[anomaly["operations"][0]]
        assert (operation["f"], operation["outcome"]) == ("send", "ok"), anomaly


@pytest.mark.parametrize("number", range(KILLS))
def test_a_harness_killed_with_9_leaves_no_process_and_a_history_that_can_be_judged(
    fencepost: Fencepost, tmp_path: Path, number: int
) -> None:
    moment = random.Random(number).randrange(200, 20_000)
    harness = subprocess.Popen(
        [*FENCEPOST, "run", "smoke", "--seed", "3"],
        env={**os.environ, "FENCEPOST_RESULTS": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    raw = tmp_path / "latest" / "raw"
    await_("sends", lambda: raw.is_dir() and live_counts(raw).ok >= moment)
    seen = live_counts(raw)
    harness.send_signal(signal.SIGKILL)
    harness.wait(timeout=60)
    run = RunDirectory((tmp_path / "latest").resolve())
    await_("every process of the run is gone", lambda: not _processes_of(run), timeout_s=60)

    ended = fencepost("check", str(run.root), "--json", results=tmp_path)
    assert ended.returncode == 2, ended.stderr  # no final reads: unknown, never valid
    operations = sealed_table(run, "operations").to_pandas()
    sends = operations[operations["f"] == "send"]
    assert (sends["outcome"] == "ok").sum() >= seen.ok
    still_open = operations[operations["return_ns"].isna()]
    assert set(still_open["outcome"]) <= {"info"}
    for name, schema in RUN_TABLES.items():
        assert sealed_table(run, name).schema.equals(schema), name


def test_a_run_that_is_interrupted_twice_ends_everything_and_says_so(tmp_path: Path) -> None:
    harness = subprocess.Popen(
        [*FENCEPOST, "run", "smoke", "--seed", "3", *OURS],
        env={**os.environ, "FENCEPOST_RESULTS": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    raw = tmp_path / "latest" / "raw"
    await_("sends", lambda: raw.is_dir() and live_counts(raw).ok > 100)
    harness.send_signal(signal.SIGINT)
    assert harness.stderr is not None
    assert any("ends at once" in line for line in harness.stderr)
    harness.send_signal(signal.SIGINT)
    _, err = harness.communicate(timeout=180)
    assert harness.returncode == 255
    run = RunDirectory((tmp_path / "latest").resolve())
    assert "interrupted by SIGINT" in err.splitlines()[-1]
    assert f"fencepost check {tmp_path}" in err.splitlines()[-1]
    manifest = read_manifest(run.manifest_path)
    assert (manifest.state, manifest.failure) == (RunState.FAILED, "interrupted by SIGINT")
    assert not _processes_of(run)
    assert run.report_path.is_file()
    assert run.junit_path.is_file()


def test_a_second_run_at_the_same_time_is_refused_with_the_first_ones_place(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = subprocess.Popen(
        [*FENCEPOST, "run", "smoke", "--seed", "3", "--time-limit", "60s", *OURS],
        env={**os.environ, "FENCEPOST_RESULTS": str(tmp_path / "first")},
        stderr=subprocess.DEVNULL,
    )
    try:
        await_("the first run", (tmp_path / "first" / "latest").exists)
        monkeypatch.delenv(WAIT_VARIABLE)
        ended = fencepost("run", "smoke", results=tmp_path / "second")
    finally:
        first.send_signal(signal.SIGTERM)
        first.wait(timeout=120)
    assert ended.returncode == 254
    assert "another run is under way: smoke on " in ended.stderr
    assert not (tmp_path / "second").exists()
    assert "--alongside" in ended.stderr


def test_a_taken_port_is_one_line_that_names_it(fencepost: Fencepost, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = fencepost("run", "smoke", "--port-base", str(port), results=tmp_path)
    assert ended.returncode == 254
    assert str(port) in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_does_not_exist_is_one_line_with_those_that_do(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost("run", "smoke", "--kafka", "9.9.9", results=tmp_path)
    assert ended.returncode in (254, 255)
    assert "9.9.9" in ended.stderr.splitlines()[-1]
    assert "4.3.1" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


def _processes_of(run: RunDirectory) -> list[int]:
    mark = f"FENCEPOST_RUN=smoke/{run.root.name}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                environment = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environment:
                found.append(int(process.name))
    return found
