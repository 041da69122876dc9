"""The cluster of a run that is over, up once more on copies of its disks, and gone again."""

import hashlib
import json
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands import Fencepost
from waiting import until

from fencepost.clusters.abilities import NodeStart
from fencepost.clusters.hosts.process import harness_lives, orphans
from fencepost.clusters.kafka.observation import ask_metadata
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.properties import properties_file
from fencepost.harness.cli.keeping import Keeping
from fencepost.harness.doctor.clean import clean_machine
from fencepost.harness.doctor.stored_runs import stored_runs
from fencepost.harness.kept.holder import moved
from fencepost.harness.kept.keeping import end_kept, keep
from fencepost.harness.kept.kept_cluster import KeptCluster, kept_of
from fencepost.harness.run.starts import RunStarts, read_starts
from fencepost.harness.serve.stored import StoredRuns
from fencepost.history.failure import HarnessError, UsageError
from fencepost.history.run_directory import RunDirectory


def kept_for(run: RunDirectory, seconds: float = 600) -> KeptCluster:
    return keep(run, for_s=seconds, alongside=False, say=lambda _: None)


def digests(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def holder_of(kept: KeptCluster) -> psutil.Process:
    return psutil.Process(int(kept.holder.partition(":")[0]))


def all_of(kept: KeptCluster) -> list[psutil.Process]:
    """The holder, its warden and the nodes."""
    holder = holder_of(kept)
    return [holder, *holder.children(recursive=True)]


def cleaned(results: Path) -> list[str]:
    """Clean; what was done to these results, and not to what others left on the machine."""
    return [line for line in clean_machine(results) if str(results) in line]


def test_it_serves_clients_and_the_run_stays_as_it_was(run: RunDirectory, results: Path) -> None:
    before = digests(run.root)
    kept = kept_for(run)
    assert sorted(kept.directories) == ["broker-1", "broker-2", "controller-1"]
    addresses = {
        NodeName(f"broker-{number}"): ("127.0.0.1", int(at.rpartition(":")[2]))
        for number, at in enumerate(kept.found_at["kafka"].split(","), 1)
    }
    answers = {}

    def are_all_there() -> bool:
        answers.update(ask_metadata(addresses))
        return set(answers) == set(addresses)

    assert until(are_all_there)
    assert any(topic.name == "t" for topic in answers[NodeName("broker-1")].topics)
    assert kept.looks == (
        f"kafka-topics.sh --bootstrap-server {kept.found_at['kafka']} --describe",
    )
    # Whoever looks at the results sees it, and removes nothing of it.
    (listed,) = stored_runs(results)
    assert (listed.kept_until, listed.may_go) == (kept.until, False)
    assert [one.kept_until for one in StoredRuns(results).listed()] == [kept.until]
    assert cleaned(results) == []

    processes = all_of(kept)
    assert len(processes) == 5
    end_kept(run)
    assert until(lambda: not any(process.is_running() for process in processes))
    assert digests(run.root) == before
    with pytest.raises(UsageError, match="no cluster of this run is up"):
        end_kept(run)


@pytest.mark.usefixtures("refused_at_once")
def test_no_other_run_starts_meanwhile_and_it_is_not_started_twice(
    run: RunDirectory, fencepost: Fencepost, results: Path
) -> None:
    kept_for(run)
    with pytest.raises(UsageError, match="is up already"):
        kept_for(run)
    ended = fencepost("run", "smoke", "--cluster", "reference", results=results)
    assert ended.returncode == 254
    assert f"`fencepost stop {run.root}` ends it" in ended.stderr
    ended = fencepost("results", "--remove", "--scenario", "smoke", results=results)
    assert "0 runs" in ended.stdout
    ended = fencepost("stop", "smoke", "--json", results=results)
    assert json.loads(ended.stdout) == {"run": str(run.root), "ended": True}
    assert kept_of(run) is None


def test_it_ends_at_its_time(run: RunDirectory) -> None:
    kept = kept_for(run, seconds=0.1)
    assert kept.is_up
    assert until(lambda: not harness_lives(kept.holder))
    assert not run.kept_path.exists()
    assert not run.kept.exists()


def test_it_is_over_when_none_of_its_nodes_is_left(run: RunDirectory) -> None:
    holder, *others = all_of(kept_for(run))
    for process in others:
        if "fencepost.clusters.reference" in process.cmdline():
            process.kill()
    assert until(lambda: not holder.is_running())
    assert not run.kept.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_interrupted_leaves_no_cluster(
    run: RunDirectory, results: Path, number: signal.Signals
) -> None:
    """SIGTERM ends the command at once: what it started hears that nobody listens any more."""
    words = [sys.executable, "-m", "fencepost", "start", "smoke", "--results", str(results)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as command:
        assert until(run.kept_path.exists)
        command.send_signal(number)
        _, said = command.communicate(timeout=60)
    assert command.returncode != 0, said
    assert until(lambda: not run.kept.exists() and not run.kept_path.exists())


@pytest.mark.parametrize("victim", ["holder", "warden"])
def test_nothing_outlives_a_kill_that_clean_does_not_end(
    run: RunDirectory, results: Path, victim: str
) -> None:
    holder, warden, *nodes = all_of(kept_for(run))
    (holder if victim == "holder" else warden).send_signal(signal.SIGKILL)
    assert until(lambda: not any(process.is_running() for process in (holder, warden, *nodes)))
    assert kept_of(run) is None
    assert cleaned(results) == [f"removed {run.kept}: what kept this cluster running is gone"]
    assert not run.kept.exists()
    assert not run.kept_path.exists()
    assert cleaned(results) == []
    # And it can be had again.
    kept_for(run)


def test_what_a_killed_holder_left_is_in_no_ones_way(run: RunDirectory) -> None:
    holder = holder_of(kept_for(run))
    holder.kill()
    assert until(lambda: kept_of(run) is None and not holder.children())
    assert run.kept.exists()
    assert until(lambda: not orphans())
    assert kept_for(run).is_up


def test_what_cannot_be_started_is_refused_in_one_line(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = RunDirectory(tmp_path / "smoke/20260101T000000Z")
    other.nodes.mkdir(parents=True)
    other.manifest_path.write_bytes(run.manifest_path.read_bytes())
    with pytest.raises(UsageError, match="cannot be started again: they must be processes of"):
        kept_for(other)
    other.starts_path.write_bytes(run.starts_path.read_bytes())
    with pytest.raises(UsageError, match=r"the data of its nodes are gone .* or with --keep-data"):
        kept_for(other)
    # After a run it is said, and the verdict stands.
    Keeping(for_s=60, alongside=False).keep_first([other], aside=False)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("fencepost: not kept running: ")
    assert said.err.endswith(f"`fencepost start {other.root}` tries it again\n")


def test_a_port_that_is_taken_is_named(run: RunDirectory) -> None:
    starts = read_starts(run)
    assert starts is not None
    port = starts.nodes[1].ports[0]
    taken = pytest.raises(HarnessError, match=f"another process listens on {port}; end it")
    with socket.create_server(("127.0.0.1", port)), taken:
        kept_for(run)
    assert not run.kept.exists()


def test_a_run_can_be_elsewhere_by_then(run: RunDirectory, tmp_path: Path) -> None:
    """As results that were moved: its files name a place where nothing is any more."""
    at = tmp_path / "moved"
    run.root.rename(at)
    try:
        kept = kept_for(RunDirectory(at))
        assert all(one.startswith(str(at)) for one in kept.directories.values())
        told = (at / "kept/broker-1/server.properties").read_text()
        assert str(run.root) not in told
        end_kept(RunDirectory(at))
    finally:
        at.rename(run.root)


def start_in(directory: Path, **changes: Any) -> NodeStart:
    return replace(
        NodeStart(
            node=NodeName("broker-1"),
            directory=directory,
            command=("run", f"--config={directory}/server.properties"),
            files=("server.properties", "hosts"),
            ports=(9,),
            found_at={LinkProtocol.KAFKA: "127.0.0.1:9"},
        ),
        **changes,
    )


def test_files_name_the_copies_and_no_proxy(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "Läufe")
    one, ten = run.nodes / "broker-1", run.nodes / "broker-10"
    (one / "disk/data").mkdir(parents=True)
    settings = {"log.dirs": f"{one}/disk/data", "other": str(ten), "listeners": "C://127.100.1.1:9"}
    (one / "server.properties").write_text(properties_file(settings))
    (one / "hosts").write_text("127.101.1.1 b\n127.101.11.1 c\n127.0.0.1 d\n")
    routes = {"127.100.1.1": "127.0.0.1", "127.101.1.1": "127.0.0.1", "127.101.11.1": "127.0.0.1"}
    start = start_in(one)
    again = moved(start, RunStarts(nodes=(start,), routes=routes), run=run)
    new = run.kept / "broker-1"
    assert again == start_in(new)
    expected = {**settings, "log.dirs": f"{new}/disk/data", "listeners": "C://127.0.0.1:9"}
    assert (new / "server.properties").read_text() == properties_file(expected)
    assert (new / "hosts").read_text() == "127.0.0.1 b\n127.0.0.1 c\n127.0.0.1 d\n"
