"""A ledger knows how to undo what was done, also when whoever did it is dead."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from fencepost.clusters.hosts import ledger as ledger_module
from fencepost.clusters.hosts import undo as undo_module
from fencepost.clusters.hosts.ledger import Ledger, left_ledgers, let_go_all, undo_all
from fencepost.clusters.hosts.process import process_state
from fencepost.clusters.hosts.undo import (
    RemoveContainer,
    RemoveGroup,
    RemoveInterface,
    RemoveNamespace,
    RemoveRoute,
    RemoveSocket,
    Undo,
    Unmount,
    undo_data,
    undo_of,
)
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

HARNESS = """
import os, sys, time
from pathlib import Path
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.undo import RemoveNamespace
from fencepost.clusters.hosts.warden import Warden

ledger = Ledger(run_id="doomed/run", directory=Path(sys.argv[1]))
will = [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').close()", sys.argv[2]]
warden = Warden(run_id="doomed/run", will=will)
ledger.note(RemoveNamespace(name="fp-that-never-was"))
child = warden.spawn(["sleep", "600"], name="child", log=Path(os.devnull))
if len(sys.argv) > 3:
    warden.close()
print(child, flush=True)
time.sleep(600)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """The deed of these tests is a file."""

    path: str

    def undo(self) -> None:
        if Path(self.path).is_dir():
            raise HarnessError(f"{self.path} is a directory")
        Path(self.path).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _a_further_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(undo_module._KINDS, "RemoveFile", RemoveFile)  # type: ignore[arg-type]


@pytest.fixture
def ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "ledgers"
    monkeypatch.setattr(ledger_module, "_ledgers", lambda: directory)
    return directory


def did(ledger: Ledger, path: Path) -> RemoveFile:
    """Note the deed, and do it."""
    undo = RemoveFile(path=str(path))
    ledger.note(undo)
    path.touch()
    return undo


def test_an_undo_survives_json() -> None:
    for undo in (RemoveNamespace(name="fp1"), RemoveRoute(route="unreachable 10.0.0.0/8")):
        assert undo_of(json.loads(json.dumps(undo_data(undo)))) == undo
    with pytest.raises(HarnessError, match="an undo that this release of Fencepost does not know"):
        undo_of({"kind": "system", "argv": ["rm"]})


@pytest.mark.parametrize(
    "undo",
    [
        {"kind": "RemoveNamespace", "name": "mine"},
        {"kind": "RemoveInterface", "name": "eth0"},
        {"kind": "RemoveContainer", "name": "database"},
        {"kind": "RemoveNetwork", "name": "bridge"},
        {"kind": "RemoveGroup", "directory": "/sys/fs/cgroup/user.slice"},
        {"kind": "RemoveGroup", "directory": "/tmp/fencepost-1-broker-1"},
        {"kind": "RemoveRoute", "route": "default via 10.0.0.1"},
        {"kind": "RemoveSocket", "path": "/run/docker.sock", "pid": 1},
        {"kind": "Unmount", "directory": "/proc"},
    ],
)
def test_what_bears_no_mark_of_ours_is_never_undone(undo: dict[str, object]) -> None:
    with pytest.raises(HarnessError, match="has no name of Fencepost's, so it is left alone"):
        undo_of(undo)


@pytest.mark.parametrize(
    "undo",
    [
        RemoveNamespace(name="fpd510-broker-1"),
        RemoveInterface(name="fpd510"),
        RemoveInterface(name="fpd510-switch"),
        RemoveContainer(name="fencepost-smoke-20260101T000000Z-12-broker-1"),
        RemoveGroup(directory="/sys/fs/cgroup/fencepost-12-broker-1"),
        RemoveRoute(route="local 10.213.8.0/21 dev lo", table="local"),
        Unmount(directory="/nonexistent/disk"),
    ],
)
def test_what_a_run_notes_bears_it(undo: Undo) -> None:
    assert undo_of(undo_data(undo)) == undo


def test_a_run_that_does_nothing_to_the_machine_has_no_file(ledgers: Path) -> None:
    with Ledger(run_id="r"):
        pass
    assert not ledgers.exists()


def test_all_is_undone_at_the_end_the_last_deed_first(
    ledgers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone: list[str] = []
    monkeypatch.setattr(RemoveFile, "undo", lambda self: undone.append(Path(self.path).name))
    with Ledger(run_id="smoke/20260301T080000Z") as ledger:
        for name in ("a", "b", "c"):
            did(ledger, tmp_path / name)
        assert [path.name for path in ledgers.iterdir()] == [
            f"smoke-20260301T080000Z-{os.getpid()}.jsonl"
        ]
    assert undone == ["c", "b", "a"]
    assert list(ledgers.iterdir()) == []


def test_what_is_settled_is_not_undone_again(ledgers: Path, tmp_path: Path) -> None:
    with Ledger(run_id="r") as ledger:
        first, second = tmp_path / "first", tmp_path / "second"
        settled = did(ledger, first)
        did(ledger, second)
        ledger.settle(settled)
        assert not first.exists()
        first.touch()
    assert first.exists()
    assert not second.exists()
    assert list(ledgers.iterdir()) == []


def test_what_cannot_be_undone_stays_and_the_rest_is_undone(ledgers: Path, tmp_path: Path) -> None:
    stubborn = tmp_path / "stubborn"
    ledger = Ledger(run_id="r")
    did(ledger, tmp_path / "a")
    ledger.note(RemoveFile(path=str(stubborn)))
    stubborn.mkdir()
    with pytest.raises(HarnessError, match=r"not as it was before the run: .*stubborn is a dir"):
        ledger.close()
    assert not (tmp_path / "a").exists()
    stubborn.rmdir()
    assert undo_all(ledger.path) == [f"undone for run r: {RemoveFile(path=str(stubborn))}"]
    assert undo_all(ledger.path) == []
    assert list(ledgers.iterdir()) == []


def test_a_torn_last_line_is_of_a_deed_that_was_never_begun(ledgers: Path, tmp_path: Path) -> None:
    ledger = Ledger(run_id="r")
    did(ledger, tmp_path / "a")
    with ledger.path.open("a") as file:
        file.write(json.dumps({"number": 1, "undo": asdict(RemoveFile(path="/"))})[:-9])
    assert len(undo_all(ledger.path)) == 1
    assert list(ledgers.iterdir()) == []


def test_a_torn_last_line_is_not_written_behind(ledgers: Path, tmp_path: Path) -> None:
    stubborn = tmp_path / "stubborn"
    ledger = Ledger(run_id="r")
    did(ledger, tmp_path / "a")
    ledger.note(RemoveFile(path=str(stubborn)))
    stubborn.mkdir()
    did(ledger, tmp_path / "c")
    with ledger.path.open("a") as file:
        file.write('{"number": 3, "un')
    for _ in range(2):
        with pytest.raises(HarnessError, match="stubborn is a directory"):
            undo_all(ledger.path)
    stubborn.rmdir()
    assert len(undo_all(ledger.path)) == 1
    assert list(ledgers.iterdir()) == []


def test_a_ledger_that_was_torn_in_its_first_line_is_of_nobody_and_goes(ledgers: Path) -> None:
    ledgers.mkdir()
    for name, text in (("empty", ""), ("torn", '{"run": "smo')):
        (ledgers / f"{name}.jsonl").write_text(text)
    left = left_ledgers()
    assert len(left) == 2
    assert [undo_all(path) for path in left] == [[], []]
    assert list(ledgers.iterdir()) == []


@pytest.mark.parametrize("text", ["no JSON\n", "[]\n", '{"run": "r"}\n'])
def test_what_is_no_ledger_is_left_alone_and_named(ledgers: Path, text: str) -> None:
    ledgers.mkdir()
    path = ledgers / "foreign.jsonl"
    path.write_text(text)
    assert left_ledgers() == (path,)
    with pytest.raises(HarnessError, match=f"{path} is not a readable ledger"):
        undo_all(path)
    assert path.read_text() == text


@pytest.mark.usefixtures("ledgers")
def test_all_that_holds_a_process_lets_go_before_anything_is_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(Unmount, "let_go", lambda self: done.append(f"let go {self.directory}"))
    monkeypatch.setattr(Unmount, "undo", lambda self: done.append(f"undone {self.directory}"))
    ledger = Ledger(run_id="r")
    ledger.note(Unmount(directory="a"))
    ledger.note(RemoveNamespace(name="fp-that-never-was"))
    ledger.note(Unmount(directory="b"))
    let_go_all(ledger.path)
    assert done == ["let go a", "let go b"]
    ledger.close()
    assert done[2:] == ["let go a", "let go b", "undone b", "undone a"]


@pytest.mark.parametrize("closed", [False, True], ids=["killed", "closed before"])
def test_the_warden_does_the_will_of_a_harness_that_was_killed(
    ledgers: Path, tmp_path: Path, until: Callable[..., bool], *, closed: bool
) -> None:
    witness = tmp_path / "will"
    extra = ["closed"] if closed else []
    command = [sys.executable, "-c", HARNESS, str(ledgers), str(witness), *extra]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        child = int(harness.stdout.readline())
        assert left_ledgers() == ()
        harness.kill()
    assert until(lambda: not Path(f"/proc/{child}").exists())
    [left] = left_ledgers()
    assert len(undo_all(left)) == 1
    if closed:
        assert not witness.exists()
    else:
        assert until(witness.exists)


def test_the_socket_of_a_jvm_goes_unless_its_number_is_anothers(
    until: Callable[..., bool], tmp_path: Path
) -> None:
    path = tmp_path / ".java_pid1"
    with socket.socket(socket.AF_UNIX) as jvm:
        jvm.bind(str(path))
    RemoveSocket(path=str(path), pid=os.getpid()).undo()
    assert path.exists()
    with subprocess.Popen(["true"]) as gone:
        # It has ended, and nobody has asked how yet: its number is still taken.
        assert until(lambda: process_state(gone.pid) is NodeState.DOWN)
        assert Path(f"/proc/{gone.pid}").exists()
        for _ in range(2):
            RemoveSocket(path=str(path), pid=gone.pid).undo()
            assert not path.exists()


def test_the_will_of_a_ledger_undoes_it(tmp_path: Path) -> None:
    environment: dict[str, Any] = {**os.environ, "FENCEPOST_CACHE": str(tmp_path)}
    ledger = Ledger(run_id="r", directory=tmp_path)
    ledger.note(RemoveNamespace(name="fp-that-never-was"))
    subprocess.run(ledger.will, check=True, timeout=60, env=environment)
    assert not ledger.path.exists()
