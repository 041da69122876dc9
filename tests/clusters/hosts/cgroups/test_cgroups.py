"""Where groups can be made, by what the kernel says; and a real one that holds a process back."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from fencepost.clusters.hosts.cgroups import hierarchy, node_group
from fencepost.clusters.hosts.cgroups.hierarchy import parents
from fencepost.clusters.hosts.cgroups.limits import cpu_of, memory_of
from fencepost.clusters.hosts.cgroups.node_group import NodeGroup, make_group
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.process import process_usage
from fencepost.history.failure import HarnessError

_SPINNING = "print('ready', flush=True)\nwhile True: pass"
_WRITING = """
import os, sys
print("ready", flush=True)
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
        os.fsync(file.fileno())
"""


def _parent(tree: Path, controller: str, *, group: str, kind: str) -> Path:
    lines = {
        "v1": f"1 1 0:1 / {tree}/{controller} rw - cgroup cgroup rw,{controller}",
        "v2": f"1 1 0:1 / {tree} rw - cgroup2 cgroup2 rw",
    }
    name = controller if kind == "v1" else ""
    own = {name: PurePosixPath(group)}
    return hierarchy._parent(controller, hierarchy.mounts_of(lines[kind]), own).directory


def test_in_version_1_a_group_is_made_below_the_one_we_are_in(tmp_path: Path) -> None:
    (tmp_path / "cpu/a/b").mkdir(parents=True)
    assert _parent(tmp_path, "cpu", group="/a/b", kind="v1") == tmp_path / "cpu/a/b"


def test_in_version_2_a_group_is_made_where_one_above_us_hands_the_controller_on(
    tmp_path: Path,
) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory")
    (tmp_path / "a/cgroup.subtree_control").write_text("memory")
    (tmp_path / "a/b/cgroup.subtree_control").write_text("")
    assert _parent(tmp_path, "memory", group="/a/b/c", kind="v2") == tmp_path / "a"
    assert _parent(tmp_path, "cpu", group="/a/b/c", kind="v2") == tmp_path
    (tmp_path / "cgroup.subtree_control").write_text("")
    with pytest.raises(HarnessError, match="cpu is not mounted, or not delegated"):
        _parent(tmp_path, "cpu", group="/a/b/c", kind="v2")


def test_version_2_is_written_and_read_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 5\nnr_throttled 3\nthrottled_usec 2500000\n")
    (tmp_path / "memory.stat").write_text("anon 900\nkernel 100\nfile 500\n")
    (tmp_path / "memory.current").write_text("1500\n")
    (tmp_path / "memory.events").write_text("low 0\nhigh 7\nmax 0\n")
    cpu, memory = cpu_of(tmp_path, version=2), memory_of(tmp_path, version=2)
    cpu.limit(0.1)
    assert (tmp_path / "cpu.max").read_text() == "10000 100000"
    cpu.limit(None)
    assert (tmp_path / "cpu.max").read_text() == "max 100000"
    assert cpu.throttled() == (3, 2.5)
    memory.limit(2000)
    assert (tmp_path / "memory.high").read_text() == "2000"
    memory.limit(None)
    assert (tmp_path / "memory.high").read_text() == "max"
    assert (memory.used_bytes(), memory.held_bytes(), memory.pressed()) == (1500, 1000, 7)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[NodeGroup]:
    try:
        parents()
    except HarnessError as error:
        pytest.skip(str(error))
    with Ledger(run_id="groups", directory=tmp_path) as ledger:
        made = make_group("broker-1", ledger=ledger)
        yield made
    assert not any(directory.exists() for directory in made.directories)


@contextmanager
def _process_in(group: NodeGroup, program: str, *arguments: str) -> Iterator[int]:
    command = [sys.executable, "-S", "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        group.adopt(process.pid)
        yield process.pid
        process.kill()


@pytest.fixture
def spinning(group: NodeGroup) -> Iterator[int]:
    """A process in the group that wants a core, and never waits for a disk."""
    with _process_in(group, _SPINNING) as pid:
        yield pid


@pytest.fixture
def writing(group: NodeGroup, tmp_path: Path) -> Iterator[int]:
    """A process in the group that writes a file of 64 MiB again and again."""
    with _process_in(group, _WRITING, str(tmp_path / "file")) as pid:
        yield pid


def test_a_process_is_held_back_and_let_go(group: NodeGroup, spinning: int) -> None:
    assert group.throttle(0.05) == "broker-1: held back by the kernel at 5.0% of a core"
    assert "free again; held back " in group.unthrottle()
    count, held_back_s = group.cpu.throttled()
    assert count > 0
    assert held_back_s > 0
    assert process_usage(spinning) is not None


def test_a_process_that_asks_for_little_is_not_held_back(
    group: NodeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_group, "_EFFECT_TIMEOUT_S", 0.1)
    with pytest.raises(HarnessError, match="uses less than 5%"):
        group.throttle(0.05)


class _Obeying:
    """Memory of 10 MiB of heap and of some that is given back as soon as a bound asks for it."""

    def __init__(self, *, beside_mib: int) -> None:
        self.used = (10 + beside_mib) << 20
        self.bound: int | None = None

    def limit(self, size_bytes: int | None) -> bool:
        self.bound = size_bytes
        self.used = self.used if size_bytes is None else min(self.used, size_bytes)
        return True

    def used_bytes(self) -> int:
        return self.used

    def held_bytes(self) -> int:
        return 10 << 20

    def pressed(self) -> int:
        return 0


class _Reluctant(_Obeying):
    """Says EBUSY to any bound below what is used, and each time gives back `steps_mib` more."""

    def __init__(self, *, steps_mib: tuple[int, ...]) -> None:
        super().__init__(beside_mib=20)
        self._steps_mib = list(steps_mib)

    def limit(self, size_bytes: int | None) -> bool:
        if size_bytes is None or size_bytes >= self.used:
            self.bound = size_bytes
            return True
        self.used -= (self._steps_mib.pop(0) if self._steps_mib else 0) << 20
        return False


def _of_fakes(memory: _Obeying, directory: Path) -> NodeGroup:
    return NodeGroup(
        node="broker-1", directories=(), cpu=cpu_of(directory, version=2), memory=memory
    )


@pytest.mark.parametrize(("beside_mib", "room_mib"), [(20, 8), (6, 3), (8, 4)])
def test_a_node_is_pressed_however_little_it_has_beside_its_heap(
    tmp_path: Path, beside_mib: int, room_mib: int
) -> None:
    memory = _Obeying(beside_mib=beside_mib)
    evidence = _of_fakes(memory, tmp_path).squeeze(8 << 20)
    assert memory.bound == (10 + room_mib) << 20
    assert f"{room_mib}.0 MiB of it beside its heap" in evidence


def test_a_kernel_that_cannot_take_back_enough_at_once_is_asked_again(tmp_path: Path) -> None:
    memory = _Reluctant(steps_mib=(0, 5, 0, 7))
    evidence = _of_fakes(memory, tmp_path).squeeze(8 << 20)
    assert memory.bound == 18 << 20
    assert "bound to 18.0 MiB, 8.0 MiB of it beside its heap; it used 30.0 MiB before" in evidence
    assert "tries" not in evidence


def test_a_bound_that_is_not_reached_says_which_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_group, "_EFFECT_TIMEOUT_S", 0.1)
    memory = _Reluctant(steps_mib=(0, 5))
    evidence = _of_fakes(memory, tmp_path).squeeze(8 << 20)
    assert memory.bound == 25 << 20
    assert evidence.startswith("broker-1: bound to 25.0 MiB, 15.0 MiB of it beside its heap")
    assert "; the kernel took 18.0 MiB in none of " in evidence


def test_a_node_that_gives_nothing_back_is_not_squeezed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_group, "_EFFECT_TIMEOUT_S", 0.1)
    memory = _Reluctant(steps_mib=())
    with pytest.raises(HarnessError, match=r"used 30\.0 MiB and released none of it"):
        _of_fakes(memory, tmp_path).squeeze(8 << 20)
    assert memory.bound is None


@pytest.mark.parametrize(
    ("number", "says"), [(errno.EBUSY, None), (errno.EINVAL, "cannot be set to 5")]
)
def test_version_1_may_be_asked_again_after_ebusy_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str | None
) -> None:
    memory = memory_of(tmp_path, version=1)

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", refuse)
    if says is None:
        assert not memory.limit(5)
    else:
        with pytest.raises(HarnessError, match=says):
            memory.limit(5)


def test_a_process_is_pressed_and_goes_on(group: NodeGroup, writing: int) -> None:
    del writing
    evidence = group.squeeze(4 << 20)
    assert evidence.startswith("broker-1: bound to ")
    assert group.memory.used_bytes() <= group.memory.held_bytes() + (16 << 20)
    assert "free again" in group.unsqueeze()
