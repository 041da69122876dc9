"""A run that is killed with -9 while its faults are in effect, with or without its warden."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.process import RUN_VARIABLE

_UP_S: Final = 180.0
"""Until all faults are in effect: containers on a busy machine take a minute."""
_POLL_S: Final = 0.05
_LOOKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """What runs, and what it has said of its faults."""

    root: Path
    evidence: tuple[str, ...]
    harness: "subprocess.Popen[bytes]"

    def pids(self) -> tuple[int, ...]:
        """Of all of its processes."""
        return tuple(sorted(int(process.name) for process in _processes_of(self.root)))

    def kill(self, *, warden_too: bool) -> None:
        """Kill -9 the harness, and with it its warden, which cannot do anything then."""
        wardens = _wardens_of(self.harness.pid) if warden_too else []
        assert bool(wardens) is warden_too
        for warden in wardens:
            os.kill(warden, signal.SIGSTOP)
        self.harness.kill()
        self.harness.wait()
        for warden in wardens:
            os.kill(warden, signal.SIGKILL)


def fencepost(*arguments: str, temporary: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command of ours to its end."""
    return subprocess.run(
        _command(arguments),
        env=_environment(temporary),
        capture_output=True,
        text=True,
        timeout=_UP_S,
        check=False,
    )


@contextmanager
def in_the_middle(
    scenario: Path, *options: str, effects: int, temporary: Path, results: Path
) -> Iterator[LiveRun]:
    """A run so many faults of which are in effect, by their own evidence. Killed at the end."""
    words = ("run", str(scenario), "--alongside", "--seed", "1", "--results", str(results))
    said = temporary.with_name(f"{temporary.name}.log")
    with said.open("w") as log:
        harness = subprocess.Popen(
            _command((*words, *options)), env=_environment(temporary), stdout=log, stderr=log
        )
    try:
        evidence = _await_effects(results, effects, harness, said)
        yield LiveRun(root=(results / "latest").resolve(), evidence=evidence, harness=harness)
    finally:
        harness.kill()
        harness.wait()


def someone_waits_for_a_disk(run: Path) -> bool:
    """Whether a thread of the run is, and stays for a moment, in a sleep that no signal ends."""
    waiting = [
        one for process in _processes_of(run) for one in process.glob("task/*") if _waits(one)
    ]
    for _ in range(_LOOKS):
        time.sleep(_POLL_S)
        waiting = [thread for thread in waiting if _waits(thread)]
    return bool(waiting)


def _processes_of(run: Path) -> list[Path]:
    mark = f"{RUN_VARIABLE}={run.parent.name}/{run.name}".encode()
    return [process for process in Path("/proc").glob("[0-9]*") if mark in _environ(process)]


def _environ(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or the kernel's own
        return []


def _waits(thread: Path) -> bool:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "D"
    except OSError:
        return False


def _command(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "fencepost", *arguments]


def _environment(temporary: Path) -> dict[str, str]:
    mine = {name: text for name, text in os.environ.items() if name != RUN_VARIABLE}
    return {**mine, "TMPDIR": str(temporary)}


def _await_effects(
    results: Path, count: int, harness: "subprocess.Popen[bytes]", said: Path
) -> tuple[str, ...]:
    journal = results / "latest" / "raw" / "faults.jsonl"
    deadline = time.monotonic() + _UP_S
    while len(evidence := _evidence(journal)) < count:
        text = said.read_text()
        # A play that could not be performed ends early.
        over = harness.poll() is not None or " sealing " in text
        assert not over, f"{evidence}\n{text}"
        assert time.monotonic() < deadline, f"{evidence}\n{text}"
        time.sleep(_POLL_S)
    return evidence


def _evidence(journal: Path) -> tuple[str, ...]:
    if not journal.exists():
        return ()
    events = map(json.loads, journal.read_text().split("\n")[:-1])
    return tuple(event["evidence"] for event in events if event["event"] == "effect")


def _wardens_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(child) for path in children for child in path.read_text().split()]
    return [child for child in found if b"warden_server" in _command_line(child)]


def _command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
