"""A process that preloads the library, asked for the time while its clock is put wrong."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencepost.clusters.abilities import Skew
from fencepost.clusters.hosts.clocks import node_clock
from fencepost.clusters.hosts.clocks.attach import ClockReading
from fencepost.clusters.hosts.clocks.control import RIGHT, make_control, set_control
from fencepost.clusters.hosts.clocks.library import build, clock_library
from fencepost.clusters.hosts.clocks.node_clock import NodeClock
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

_TELLER = """
import sys, time
for _ in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""

Told = Callable[[], tuple[float, float]]
"""How far ahead its wall clock and its monotonic clock are, in seconds."""


@pytest.fixture(params=["shipped", "built"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "shipped":
        return clock_library()
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    build(tmp_path / "built.so")
    return tmp_path / "built.so"


@pytest.fixture
def control(tmp_path: Path) -> Path:
    make_control(tmp_path / "control")
    return tmp_path / "control"


@pytest.fixture
def told(library: Path, control: Path) -> Iterator[Told]:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _TELLER],
        env={**os.environ, "LD_PRELOAD": str(library), "FENCEPOST_CLOCK": str(control)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as teller:
        asked, answers = teller.stdin, teller.stdout
        assert asked is not None
        assert answers is not None

        def told() -> tuple[float, float]:
            asked.write("\n")
            asked.flush()
            wall_s, monotonic_s = map(float, answers.readline().split())
            return wall_s - time.time(), monotonic_s - time.monotonic()

        yield told
        asked.close()


def test_a_clock_jumps_while_its_process_runs_and_comes_back(control: Path, told: Told) -> None:
    assert told()[0] == pytest.approx(0, abs=0.5)
    for jump_s in (-3600.0, 86400.0, -0.75):
        set_control(control, Skew(jump_s=jump_s), since_ns=time.time_ns())
        assert told()[0] == pytest.approx(jump_s, abs=0.5)
    set_control(control, RIGHT, since_ns=0)
    assert told()[0] == pytest.approx(0, abs=0.5)


def test_a_clock_drifts_from_the_moment_it_is_told_to(control: Path, told: Told) -> None:
    for rate, ahead_s in ((1.05, 50.0), (0.95, -50.0), (0.0, -1000.0)):
        set_control(control, Skew(rate=rate), since_ns=time.time_ns() - 1000 * 10**9)
        assert told()[0] == pytest.approx(ahead_s, abs=1)


def test_a_strobe_is_right_in_one_span_and_wrong_in_the_next(control: Path, told: Told) -> None:
    hour_s = 3600
    for spans, ahead_s in ((0.5, 0.0), (1.5, -30.0), (2.5, 0.0)):
        since_ns = time.time_ns() - round(spans * hour_s) * 10**9
        set_control(control, Skew(strobe_s=-30, every_s=hour_s), since_ns=since_ns)
        assert told()[0] == pytest.approx(ahead_s, abs=0.5)


def test_what_waits_by_the_monotonic_clock_is_left_alone(control: Path, told: Told) -> None:
    set_control(control, Skew(jump_s=-3600), since_ns=time.time_ns())
    assert told()[1] == pytest.approx(0, abs=0.5)


def test_a_clock_that_does_not_show_its_skew_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_clock, "_EFFECT_TIMEOUT_S", 0.0)
    clock = NodeClock("broker-1", directory=tmp_path, now_ns=Clock.start().now_ns)
    clock.prepare()
    right = lambda: ClockReading(ahead_ns=1_000_000, doubt_ns=500_000)  # noqa: E731
    for skew in (Skew(jump_s=1), Skew(rate=1.5), Skew(strobe_s=2)):
        with pytest.raises(HarnessError, match=r"0\.001 s ahead of the machine's"):
            clock.put_wrong(skew, right)
    assert "its clock is right" in clock.put_right(right)


def test_when_a_clock_was_wrong_and_how_far_at_most_is_known(tmp_path: Path) -> None:
    now_ns = iter(range(0, 10**12, 10**9))
    clock = NodeClock("broker-1", directory=tmp_path, now_ns=lambda: next(now_ns))
    clock.prepare()
    reading = ClockReading(ahead_ns=-60 * 10**9, doubt_ns=0)
    clock.put_wrong(Skew(jump_s=-60), lambda: reading)
    clock.put_right(None)
    (skew,) = clock.skews()
    assert (skew.node, skew.from_ns, skew.until_ns) == ("broker-1", 0, 10**9)
    assert skew.ahead_min_ns == skew.ahead_max_ns == -60 * 10**9
    assert Skew(rate=0.9).bounds_s(10) == pytest.approx((-1, 0))
    assert Skew(strobe_s=2).bounds_s(10) == (0, 2)
