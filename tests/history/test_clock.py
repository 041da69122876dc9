import subprocess
import sys

from fencepost.history.clock import Clock


def test_a_clock_starts_at_zero_and_never_goes_back() -> None:
    clock = Clock.start()
    times = [clock.now_ns() for _ in range(100)]
    assert times == sorted(times)
    assert 0 <= times[0] < 1_000_000_000


def test_another_process_reads_the_same_clock() -> None:
    clock = Clock.start()
    program = f"from fencepost.history.clock import Clock; print(Clock({clock.origin_ns}).now_ns())"
    before_ns = clock.now_ns()
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert before_ns < int(printed) < clock.now_ns()
