"""A process notices that it stood still, and a run that all of its processes did."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fencepost.history.beat import Beat, BeatGap, Beats, read_beats, stalls
from fencepost.history.cluster_tables import fault_table
from fencepost.history.journal import FAULTS_FILE, FaultJournal

S = 1_000_000_000


class Clock:
    """A clock that is set."""

    now = 0

    def now_ns(self) -> int:
        return self.now


def beats(first_s: float, last_s: float, *gaps: tuple[float, float]) -> Beats:
    found = tuple(BeatGap(begin_ns=int(one * S), end_ns=int(other * S)) for one, other in gaps)
    return Beats(first_ns=int(first_s * S), last_ns=int(last_s * S), gaps=found)


def spans(own: Beats, *others: Beats) -> list[tuple[float, float]]:
    return [(gap.begin_ns / S, gap.end_ns / S) for gap in stalls(own, others)]


def test_a_stall_is_where_the_harness_and_all_clients_stood_still() -> None:
    own = beats(0, 100, (10, 30))
    assert spans(own, beats(5, 90, (11, 31)), beats(5, 90, (9, 29.5))) == [(11, 29.5)]


def test_a_paused_client_or_a_paused_harness_is_no_stall() -> None:
    assert spans(beats(0, 100), beats(5, 90, (11, 31))) == []
    assert spans(beats(0, 100, (10, 30)), beats(5, 90)) == []
    assert spans(beats(0, 100, (10, 30)), beats(5, 90, (11, 31)), beats(5, 90)) == []
    # One that stood still a little later than the others leaves too little in common.
    assert spans(beats(0, 100, (10, 30)), beats(5, 90, (29, 40))) == []


def test_only_clients_that_lived_then_are_asked() -> None:
    own = beats(0, 100, (10, 30))
    ended, reader = beats(2, 8), beats(60, 99)
    assert spans(own, ended, reader, beats(5, 90, (10, 30))) == [(10, 30)]
    assert spans(own, ended, reader) == []


def test_a_gap_is_what_has_passed_since_the_last_strike(tmp_path: Path) -> None:
    path = tmp_path / "c.beat"
    beat = Beat(os.open(path, os.O_WRONLY | os.O_CREAT))
    first_ns = beat.so_far().first_ns
    for passed_s in (0.3, 1.9, 5.0, 5.3, 9.0):
        beat.strike(first_ns + int(passed_s * S))
    written = read_beats(path)
    assert written == beat.so_far()
    assert written is not None
    assert [round(gap.seconds, 3) for gap in written.gaps] == [3.1, 3.7]
    assert (tmp_path / "none.beat").write_bytes(b"") == 0
    assert read_beats(tmp_path / "none.beat") is None


def test_a_stopped_process_of_ours_tells_that_it_was(tmp_path: Path) -> None:
    path, module = tmp_path / "c.beat", tmp_path / "idle.py"
    module.write_text("import time\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "fencepost.history.program", "idle"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
        | {"FENCEPOST_BEATS": str(path)},
    )
    try:
        _await(lambda: path.exists() and read_beats(path) is not None)
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.3)  # what is claimed is about time that passes
        process.send_signal(signal.SIGCONT)
        _await(lambda: bool((found := read_beats(path)) and found.gaps))
    finally:
        process.kill()
        process.wait()


def test_a_fault_that_is_known_when_it_is_over_stands_where_it_began(tmp_path: Path) -> None:
    clock = Clock()
    with FaultJournal(tmp_path, clock) as journal:
        clock.now = 20 * S
        journal.begin("kill", ["broker-1"])
        journal.past("stall", ["broker-1"], begin_ns=5 * S, end_ns=9 * S, evidence="stood still")
    rows = fault_table(tmp_path / FAULTS_FILE).to_pylist()
    assert [(row["index"], row["fault"], row["begin_ns"] // S) for row in rows] == [
        (0, "stall", 5),
        (1, "kill", 20),
    ]
    assert (rows[0]["effect_ns"], rows[0]["end_ns"]) == (5 * S, 9 * S)


def _await(reached: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
